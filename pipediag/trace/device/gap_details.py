"""What else is known of a gap: who made the input late, how full the buffer was, who launched late.

The iterator of a gap is the one of the input pipeline that worked longest in it. The buffer is the
one nearest to the consumer that is filled ahead and says how many elements it holds: in its first
call in the gap, or in the last one before where that is no older than such calls usually are. What
the launching thread was doing is its shortest event that covers half of the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import STEP_MARKER
from pipediag.trace.device.gaps import NextLaunches
from pipediag.trace.device.launches import LaunchCalls
from pipediag.trace.events import Indices, Line, Times
from pipediag.trace.intervals import Intervals, covered, normalise
from pipediag.trace.pipeline.records import IteratorKey, Records

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
    doing_ids: NDArray[np.int32]
    """The place in `doing_names` of what the launching thread was doing; -1 where nothing shows."""
    doing_names: tuple[str, ...]
    launch_ids: NDArray[np.int64]
    """The correlation id of the launch that ended the gap; -1 where none is known."""

    def iterator(self, gap: int) -> IteratorKey | None:
        """The iterator that worked longest in the gap."""
        place = int(self.iterator_ids[gap])
        return None if place == _NONE else self.iterators[place]

    def doing(self, gap: int) -> str | None:
        """The event in which the launching thread spent most of the gap."""
        place = int(self.doing_ids[gap])
        return None if place == _NONE else self.doing_names[place]

    def launch(self, gap: int) -> int | None:
        """The correlation id of the launch that ended the gap."""
        found = int(self.launch_ids[gap])
        return None if found == _NONE else found


def gap_details(
    gaps: Intervals,
    records: Records,
    launches: NextLaunches,
    calls: LaunchCalls,
    training: Line | None,
) -> GapDetails:
    """The details of every gap; `training` is the thread that launches where no call is known."""
    doing_ids, doing_names = _doing(gaps, launches, calls, training)
    return GapDetails(
        iterator_ids=_busiest(gaps, records),
        iterators=tuple(records),
        buffered_elements=_buffered(gaps, records),
        doing_ids=doing_ids,
        doing_names=doing_names,
        launch_ids=np.where(launches.known, launches.correlation_ids, _NONE),
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
    """Twice the median time between two readings, of two in the middle the longer; 0 for a single
    one."""
    # numpy's own median first imports its masked arrays: a hundredth of reading a long profile.
    between = np.sort(np.diff(times_ns))
    return 2.0 * float(between[len(between) // 2]) if len(between) else 0.0


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
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """For each gap the place of a name, or -1; and the names."""
    found = np.full(len(gaps), _NONE, np.int32)
    names: dict[str, int] = {}
    for place, line in enumerate(calls.lines):
        chosen = np.flatnonzero(launches.known & (launches.line_ids == place))
        found[chosen] = _innermost(line, gaps[chosen], names)
    # A thread that only launches shows nothing else; what held it up is on the training thread.
    missing = np.flatnonzero(found == _NONE)
    if training is not None:
        found[missing] = _innermost(training, gaps[missing], names)
    return found, tuple(names)


def _innermost(line: Line, gaps: Intervals, names: dict[str, int]) -> NDArray[np.int32]:
    """For each gap the place of a name: the shortest event's that covers half of it; -1 for none.

    Names that are new are added.
    """
    found = np.full(len(gaps), _NONE, np.int32)
    if not len(gaps) or not len(line):
        return found
    lengths = line.end_ns - line.start_ns
    shortest = int((gaps[:, 1] - gaps[:, 0]).min())
    marker = [key for key, name in line.used_names.items() if name.startswith(_STEP_MARKERS)]
    events = np.flatnonzero((2 * lengths >= shortest) & ~line.named(marker))
    events = events[np.argsort(lengths[events], kind="stable")]
    first, behind = _half_covered(gaps, line.start_ns[events], line.end_ns[events])
    event = _earliest_run(first, behind, len(gaps))
    inside = np.flatnonzero(event < len(events))
    keys, which = np.unique(line.name_ids[events[event[inside]]], return_inverse=True)
    of_key = [names.setdefault(line.plane.names[key], len(names)) for key in keys.tolist()]
    found[inside] = np.array(of_key, np.int32)[which.reshape(-1)]
    return found


def _half_covered(gaps: Intervals, start: Times, end: Times) -> tuple[Indices, Indices]:
    """The gaps that each event covers half of: the first one, and the one behind the last.

    Gaps are disjoint and in order: an event reaches a run of them, and all but the run's first and
    last lie in it wholly.
    """
    first = np.searchsorted(gaps[:, 1], start, side="right")
    behind = np.searchsorted(gaps[:, 0], end, side="left")
    late = ~_covers_half(gaps, first, start, end)
    early = ~_covers_half(gaps, behind - 1, start, end)
    return first + late, behind - early


def _covers_half(gaps: Intervals, place: Indices, start: Times, end: Times) -> NDArray[np.bool_]:
    at = np.clip(place, 0, len(gaps) - 1)
    inside = np.minimum(end, gaps[at, 1]) - np.maximum(start, gaps[at, 0])
    covers: NDArray[np.bool_] = 2 * inside >= gaps[at, 1] - gaps[at, 0]
    return covers


def _earliest_run(first: Indices, behind: Indices, count: int) -> Indices:
    """For each of `count` places the first run [first, behind) that holds it; else their number.

    Each run is the union of two spans whose length is a power of two. A table holds the first run
    for every span of one length; halving the spans, down to single places, leads to the next.
    """
    runs = np.flatnonzero(behind > first)
    levels = np.frexp(behind[runs] - first[runs])[1] - 1
    earliest = np.full(count, len(first), np.intp)
    for level in range(int(levels.max(initial=0)), -1, -1):
        here = runs[levels == level]
        np.minimum.at(earliest, first[here], here)
        np.minimum.at(earliest, behind[here] - (1 << level), here)
        if level:
            half = 1 << (level - 1)
            earliest[half:] = np.minimum(earliest[half:], earliest[:-half])
    return earliest
