"""What else is known of a gap: who made the input late, how full the buffer was, who launched late.

The iterator of a gap is the one of the input pipeline that worked longest in it. The buffer is the
one nearest to the consumer that is filled ahead and says how many elements it holds: in its first
call in the gap, or in the last one before where that is no older than such calls usually are. What
the launching thread was doing is its innermost event that covers half of the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.gaps import NextLaunches
from pipediag.trace.device.launches import LaunchCalls
from pipediag.trace.events import Line
from pipediag.trace.intervals import Intervals, covered, normalise
from pipediag.trace.marker import STEP_MARKER
from pipediag.trace.pipeline.records import IteratorKey, Records

MOST_DOING = 200
"""What the launching thread was doing is looked up for that many of the longest gaps."""

_NONE = -1
_STEP_MARKERS = (STEP_MARKER, "ProfilerStep#")


@dataclass(frozen=True)
class GapDetails:
    """Columns of the gaps, in their order."""

    iterator_ids: NDArray[np.intp]
    """The place in `iterators` of the one that worked longest; -1 where none worked."""
    iterators: tuple[IteratorKey, ...]
    buffered_elements: NDArray[np.float64]
    """NaN where no buffer says."""
    doing: dict[int, str]
    """By gap, for the longest."""

    def iterator(self, gap: int) -> IteratorKey | None:
        """The iterator that worked longest in the gap."""
        place = int(self.iterator_ids[gap])
        return None if place == _NONE else self.iterators[place]


def gap_details(
    gaps: Intervals,
    records: Records,
    launches: NextLaunches,
    calls: LaunchCalls,
    training: Line | None,
) -> GapDetails:
    """The details of every gap; `training` is the thread that launches where no call is known."""
    iterators = tuple(records)
    return GapDetails(
        iterator_ids=_busiest(gaps, records),
        iterators=iterators,
        buffered_elements=_buffered(gaps, records),
        doing=_doing(gaps, launches, calls, training),
    )


def _busiest(gaps: Intervals, records: Records) -> NDArray[np.intp]:
    if not records or not len(gaps):
        return np.full(len(gaps), _NONE)
    worked = np.column_stack(
        [
            covered(normalise(record.work[:, 0], record.work[:, 1]), gaps)
            for record in records.values()
        ]
    )
    busiest: NDArray[np.intp] = np.where(worked.any(axis=1), np.argmax(worked, axis=1), _NONE)
    return busiest


def _buffered(gaps: Intervals, records: Records) -> NDArray[np.float64]:
    # A shuffle's buffer is always full; only a buffer that is filled ahead says anything.
    ahead = [key for key, record in records.items() if record.asynchronous]
    for path, names in sorted(ahead, key=lambda key: key[0].count("::")):
        found = _buffer_readings(records, (path, names))
        if len(found):
            return _readings_at(gaps, found)
    return np.full(len(gaps), np.nan)


def _readings_at(gaps: Intervals, found: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each gap, the first reading in it: a call that blocks tells what it met when it began.

    Without one, the last reading before the gap, if it is not long past.
    """
    times = found[:, 0]
    following = np.searchsorted(times, gaps[:, 0])
    inside = (following < len(times)) & (times[np.minimum(following, len(times) - 1)] < gaps[:, 1])
    place = np.where(inside, following, following - 1)
    age = gaps[:, 0] - times[np.maximum(place, 0)]
    fresh = (place >= 0) & (age <= _usual_interval(times))
    return np.where(fresh, found[np.maximum(place, 0), 1].astype(np.float64), np.nan)


def _usual_interval(times_ns: NDArray[np.int64]) -> float:
    """Twice the median time between two readings; 0 for a single one."""
    return 2.0 * float(np.median(np.diff(times_ns))) if len(times_ns) > 1 else 0.0


def _buffer_readings(records: Records, key: IteratorKey) -> NDArray[np.int64]:
    """Rows of time and elements, in order of time."""
    rows = [np.empty((0, 2), np.int64)]
    for line, indices in records[key].calls:
        values, present = line.statistics.integers("buffered_elements", indices)
        rows.append(np.column_stack((line.start_ns[indices][present], values[present])))
    found = np.concatenate(rows)
    return found[np.argsort(found[:, 0], kind="stable")]


def _doing(
    gaps: Intervals, launches: NextLaunches, calls: LaunchCalls, training: Line | None
) -> dict[int, str]:
    longest = np.argsort(gaps[:, 0] - gaps[:, 1], kind="stable")[:MOST_DOING]
    found: dict[int, str] = {}
    by_line: dict[int, list[int]] = {}
    for gap in longest.tolist():
        line = int(launches.line_ids[gap]) if launches.known[gap] else _NONE
        by_line.setdefault(line, []).append(gap)
    for place, chosen in by_line.items():
        if place != _NONE:
            found.update(_innermost(calls.lines[place], gaps, chosen))
    # A thread that only launches shows nothing else; what held it up is on the training thread.
    missing = [gap for gap in longest.tolist() if gap not in found]
    if training is not None and missing:
        found.update(_innermost(training, gaps, missing))
    return found


def _innermost(line: Line, gaps: Intervals, chosen: list[int]) -> dict[int, str]:
    """For each chosen gap the shortest event of the line that covers half of it."""
    lengths = line.end_ns - line.start_ns
    shortest = int((gaps[chosen, 1] - gaps[chosen, 0]).min())
    marker = [key for key, name in line.used_names.items() if name.startswith(_STEP_MARKERS)]
    events = np.flatnonzero((2 * lengths >= shortest) & ~line.named(marker))
    start, end = line.start_ns[events], line.end_ns[events]
    found = {}
    for gap in chosen:
        first, last = gaps[gap].tolist()
        inside = np.minimum(end, last) - np.maximum(start, first)
        enough = np.flatnonzero(2 * inside >= last - first)
        if len(enough):
            event = int(events[enough[np.argmin(lengths[events[enough]])]])
            found[gap] = line.event_name(event)
    return found
