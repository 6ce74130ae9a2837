"""When a block of a trial ran, by the clock of windows and steps."""

from __future__ import annotations

from pipediag.session.trials import TrialBlock, TrialRun


def block_start_ms(run: TrialRun, block: TrialBlock) -> float | None:
    """The start of its counted steps; None in sessions that did not note it."""
    if run.start_ms is None or block.since_began_ms is None:
        return None
    return run.start_ms + block.since_began_ms
