"""What a table costs in time as it is and each way out, timed by itself on the run's machine."""

from __future__ import annotations

from pipediag.session.record import Interval, Record
from pipediag.vocabulary import TimedPart, WayName

NOT_ASKED = "Ways out of tables were not timed: `--time-ways SECONDS` times them after the run."


class WayTime(Record):
    """One way against the table as it is, in blocks that took turns."""

    way: WayName
    timed: TimedPart | None = None
    """What of it: the rest of the model is in neither. None where it was not timed."""
    base_ms: float | None = None
    """Of the table as it is, in these rounds: the median."""
    ms: float | None = None
    speedup: float | None = None
    """Time as it is over time this way: above 1 the way is the faster one."""
    ci95: Interval | None = None
    rounds: int | None = None
    """Each held a block of both, and gives one ratio."""
    missing: str | None = None
    """Why there is no ratio, as a sentence."""


class TableTimes(Record):
    """An embedding table whose ways out were timed."""

    layer: str
    variable: str | None
    rows: int
    timed_rows: int | None = None
    """Rows of the table that was timed: fewer where all of them do not fit into memory twice."""
    batches: int | None = None
    """Batches of the run whose ids it was looked up by, in turn."""
    device: str | None = None
    """Where it stood."""
    ways: list[WayTime] = []
    notes: list[str] = []
    """In what the timed table is not that of the run."""
    missing: str | None = None
    """Why none of its ways was timed, as a sentence."""


class WayTimes(Record):
    """The tables that were timed after the run, in a process of their own."""

    budget_s: float
    """As given; TensorFlow's start in that process comes on top."""
    took_s: float
    """All of it."""
    buckets: int
    """Ids that share a row in hashing, and remainders."""
    tables: list[TableTimes] = []
    """The largest first."""
