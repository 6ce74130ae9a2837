"""Hand-made ledgers of runs: what is not given to another part is in the loop's steps."""

from __future__ import annotations

from typing import Any

from pipediag.session.ledger import Run, RunPart
from pipediag.vocabulary import RunPartName
from tests import factories
from tests.records import SCRIPT

WHOLE_S = 100.0


def make_part(part: RunPartName, seconds: float, **overrides: Any) -> RunPart:
    """A row of a ledger of 100 s, so that its seconds are its percents."""
    return factories.make_part(part, seconds, WHOLE_S, **overrides)


def make_run(*parts: RunPart, whole_s: float = WHOLE_S, **overrides: Any) -> Run:
    """A run of 20 epochs, or of as many as are planned; `whole_s` other than 100 makes the percents
    what they then are."""
    steps_s = max(0.0, whole_s - sum(part.seconds for part in parts))
    steps = make_part("steps", steps_s, file=SCRIPT, line=20, loop_id="loop_0", count=1000)
    rows = [
        part.model_copy(update={"percent": 100.0 * part.seconds / whole_s})
        for part in (*parts, steps)
        if part.seconds > 0.0
    ]
    values: dict[str, Any] = {
        "scope": "run",
        "total_s": whole_s,
        "pipediag_s": 3.0,
        "epochs_seen": float(overrides.get("epochs_planned") or 20),
        "epochs_planned": 20,
        "parts": rows,
    }
    return Run(**{**values, **overrides})
