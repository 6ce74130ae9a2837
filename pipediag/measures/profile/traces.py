"""The profile that belongs to a loop, summarised, or the reason why there is none."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.measures.step.perturbation import profile_missing
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.trace.summary import TraceSummary, summarise


def trace_of(
    recording: Recording, loop: RecordedLoop, *, by_operation: bool = False
) -> tuple[TraceSummary | None, str | None]:
    """The summary of the loop's last profile, or None and why; a damaged profile is no error.

    One without a step of the loop holds what came after it: an evaluation, and what it compiled.

    Args:
        by_operation: whether to tell which operations the compute was, too.
    """
    of_loop = [
        window
        for window in recording.windows
        if window.loop_id == loop.id
        and window.trace_directory is not None
        and (loop.kind == "in_graph" or any(block.durations_ns for block in window.blocks))
    ]
    if not of_loop:
        return None, profile_missing(recording, loop)
    try:
        return _summary(Path(of_loop[-1].trace_directory or ""), by_operation), None
    except PipediagError as error:
        return None, str(error)


@lru_cache(maxsize=1)
def _summary(directory: Path, by_operation: bool) -> TraceSummary:
    """Read once: a loop is diagnosed when it waits for trials and again when the script is over."""
    return summarise(directory, by_operation=by_operation)
