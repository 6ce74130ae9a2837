"""What of a step is work on text that the input pipeline could do."""

from __future__ import annotations

from pipediag.session.record import Record


class TextWork(Record):
    """Operations of the step's graph that split, hash, look up or decode."""

    percent: float
    """Of the profiled step, in which any of them ran."""
    ms: float
    """The same of the mean step without a profiler."""
    operations: dict[str, float] = {}
    """Percent of the step by type, the largest first; what runs at once counts for each."""
