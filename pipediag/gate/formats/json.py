"""The gate's results as JSON, for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipediag.encoding.json import dumped
from pipediag.gate.result import GateResult, worst_status
from pipediag.gate.wording import status_word, worst_checks_first


def render(results: Sequence[GateResult]) -> str:
    """`status` and `exit_status` of all together, and each session's checks, the worst first."""
    status = worst_status(results)
    return dumped(
        {
            "status": status.name.lower().replace("_", "-"),
            "exit_status": status.value,
            "sessions": [_session(result) for result in results],
        }
    )


def _session(result: GateResult) -> dict[str, Any]:
    return {
        "label": result.label,
        "script": result.script,
        "status": status_word(result),
        "exit_status": result.status.value,
        "script_failure": result.script_failure,
        "notes": list(result.notes),
        "checks": [
            {name: _finite(value) for name, value in asdict(check).items()}
            for check in worst_checks_first(result)
        ],
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity; the sum of a stranger's numbers can be one."""
    if isinstance(value, tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
