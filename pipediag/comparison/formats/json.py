"""A comparison as JSON, for programs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from pipediag.comparison.result import Comparison
from pipediag.encoding.json import dumped


def render(comparison: Comparison) -> str:
    """All of it, with `outcome` and `exit_status`; what was not measured is null."""
    content = {
        "outcome": comparison.outcome,
        "exit_status": comparison.status.value,
        **asdict(comparison),
        "quantities": [
            {**asdict(one), "difference": one.difference} for one in comparison.quantities
        ],
    }
    return dumped(_finite(content))


def _finite(value: Any) -> Any:
    """JSON has no infinity; a stranger's numbers can give one."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value
