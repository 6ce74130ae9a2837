"""Why a device was idle: every nanosecond of every gap gets exactly one cause.

A gap ends where the device's next activity starts, and the call that launched that activity divides
it. Until the call began, the host was late, and its activity is the cause:

input       the consumer was blocked in GetNext
compile     a function was traced, or the graph or XLA compiled
copy        a thread other than tf.data's was in a copy call of the driver
collective  the training thread waited while another device was busy
sync        the training thread waited for the device
launch      it dispatched operations, or the executor's threads did
python      a Python function ran in the graph, or the training thread was elsewhere in Python:
            callbacks, logging, metrics
collective  none of these, and another device was busy
unknown     none of these

The call itself is launch, or copy. After the call the device had its work and did not begin it. If
another device was busy, that is collective: a kernel that waits for a peer, or a stream that waits
for an event. Otherwise it is launch where the call came after the device had gone idle, and queued
where the work had been waiting since before. Without a call that matches, as on a CPU, the host's
part is the whole gap.

The iterator of a gap is the one of the input pipeline that worked longest in it. The buffer is the
one nearest to the consumer that is filled ahead and says how many elements it has: in its first
call in the gap, or in the last one before if that is no older than such calls usually are. The
launching thread was doing its shortest event that covers half of the gap.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace import STEP_MARKER
from pipediag.trace.device_events import COPY_CALL, NOT_FOUND, LaunchCalls
from pipediag.trace.events import Indices, Line, Times, TraceEvents
from pipediag.trace.intervals import (
    Intervals,
    covered,
    intersect,
    normalise,
    rows,
    union,
    without_earlier,
)
from pipediag.trace.pipeline import IteratorKey, Records
from pipediag.trace.threads import is_pipeline_thread
from pipediag.vocabulary import GAP_CAUSES, GapCause, StepClass

_PYTHON_OPERATION = re.compile(r"[^\s:]+:(Eager)?PyFunc\w*$")
_STEP_MARKERS = (STEP_MARKER, "ProfilerStep#")
_NONE = -1
_NO_TIMES = np.empty(0, np.int64)
_Column = NDArray[np.int64]


HostCauses = list[tuple[GapCause, Intervals]]
"""Activity of the host; where the sets overlap, the first takes the time."""


def host_causes(events: TraceEvents, by_class: dict[StepClass, Intervals]) -> HostCauses:
    """Return the host's activity, from its events and their classes."""
    # tf.data's threads copy ahead, beside the loop.
    lines = [line for line in events.host_lines if not is_pipeline_thread(line)]
    return [
        ("input", by_class["input_wait"]),
        ("compile", by_class["compile"]),
        ("copy", union(*(line.during_like(COPY_CALL) for line in lines))),
        ("sync", by_class["device_wait"]),
        ("python", union(*(line.during_like(_PYTHON_OPERATION) for line in lines))),
        ("launch", by_class["dispatch"]),
        ("python", by_class["python"]),
    ]


@dataclass(frozen=True)
class NextLaunches:
    """For each gap, the call that launched the activity at its end; 0 where none is known."""

    known: NDArray[np.bool_]
    start_ns: _Column
    end_ns: _Column
    copies: NDArray[np.bool_]
    line_ids: NDArray[np.int32]
    """The place of the call's thread in `LaunchCalls.lines`."""
    correlation_ids: _Column


def next_launches(
    gaps: Intervals, start_ns: Times, launched_by: NDArray[np.intp], calls: LaunchCalls
) -> NextLaunches:
    """Return the calls that launched the activities which end the gaps.

    A gap that the window's end cuts off ends with the first activity after that.

    Args:
        gaps: the gaps of one device.
        start_ns: the starts of its activities.
        launched_by: the place of each activity's call, as `LaunchCalls.of` gives it.
        calls: all calls.
    """
    following = np.searchsorted(start_ns, gaps[:, 1])
    call = np.append(launched_by, NOT_FOUND)[following]
    # `NOT_FOUND` is the last place of each column here.
    return NextLaunches(
        known=call != NOT_FOUND,
        start_ns=np.append(calls.start_ns, 0)[call],
        end_ns=np.append(calls.end_ns, 0)[call],
        copies=np.append(calls.copies, False)[call],
        line_ids=np.append(calls.line_ids, 0)[call],
        correlation_ids=np.append(calls.correlation_ids, 0)[call],
    )


def divide_gaps(
    gaps: Intervals, host: HostCauses, launches: NextLaunches, other_devices: Intervals
) -> NDArray[np.int64]:
    """Return nanoseconds of each gap by cause, shape (gaps, causes); rows add up to the gaps."""
    start, end = gaps[:, 0], gaps[:, 1]
    called = np.where(launches.known, np.clip(launches.start_ns, start, end), end)
    returned = np.where(launches.known, np.clip(launches.end_ns, called, end), end)
    ordered: HostCauses = []
    for cause, spans in host:
        if cause == "sync":
            ordered.append(("collective", intersect(spans, other_devices)))
        ordered.append((cause, spans))
    ordered.append(("collective", other_devices))
    split = dict.fromkeys(GAP_CAUSES, np.zeros(len(gaps), np.int64))
    before_call = rows(start, called)
    alone = without_earlier(spans for _, spans in ordered)
    for (cause, _), spans in zip(ordered, alone, strict=True):
        split[cause] = split[cause] + covered(spans, before_call)
    attributed = np.sum(list(split.values()), axis=0)
    split["unknown"] = called - start - attributed
    split["copy"] = split["copy"] + np.where(launches.copies, returned - called, 0)
    split["launch"] = split["launch"] + np.where(launches.copies, 0, returned - called)
    behind_others = covered(other_devices, rows(returned, end))
    split["collective"] = split["collective"] + behind_others
    late = launches.end_ns > start
    rest = end - returned - behind_others
    split["launch"] = split["launch"] + np.where(late, rest, 0)
    split["queued"] = np.where(late, 0, rest)
    return np.column_stack([split[cause] for cause in GAP_CAUSES])


@dataclass(frozen=True)
class GapDetails:
    """Columns of the gaps, in their order; -1 in place of an iterator, event or call for none."""

    iterator_ids: NDArray[np.intp]
    """The place in `iterators` of the one that worked longest."""
    iterators: tuple[IteratorKey, ...]
    buffered_elements: NDArray[np.float64]
    """NaN where no buffer says."""
    doing_ids: NDArray[np.int32]
    """The place in `doing_names` of what the launching thread was doing."""
    doing_names: tuple[str, ...]
    launch_ids: NDArray[np.int64]
    """The correlation id of the launch that ended the gap."""

    def iterator(self, gap: int) -> IteratorKey | None:
        """Return the iterator that worked longest in the gap."""
        place = int(self.iterator_ids[gap])
        return None if place == _NONE else self.iterators[place]

    def doing(self, gap: int) -> str | None:
        """Return the event in which the launching thread spent most of the gap."""
        place = int(self.doing_ids[gap])
        return None if place == _NONE else self.doing_names[place]

    def launch(self, gap: int) -> int | None:
        """Return the correlation id of the launch that ended the gap."""
        found = int(self.launch_ids[gap])
        return None if found == _NONE else found


def gap_details(
    gaps: Intervals,
    records: Records,
    launches: NextLaunches,
    calls: LaunchCalls,
    training: Line | None,
) -> GapDetails:
    """Return the details of every gap; `training` is the thread that launches where none shows."""
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
        [covered(normalise(*record.work.T), gaps) for record in records.values()]
    )
    busiest: NDArray[np.intp] = np.where(worked.any(axis=1), np.argmax(worked, axis=1), _NONE)
    return busiest


def _buffered(gaps: Intervals, records: Records) -> NDArray[np.float64]:
    # A shuffle's buffer is always full; only a buffer that is filled ahead says anything.
    ahead = [key for key, record in records.items() if record.asynchronous]
    for key in sorted(ahead, key=lambda key: key[0].count("::")):
        found = [
            (line.start_ns[indices], *line.statistics.integers("buffered_elements", indices))
            for line, indices in records[key].calls
        ]
        times = np.concatenate([_NO_TIMES, *(start[present] for start, _, present in found)])
        if len(times):
            elements = np.concatenate([values[present] for _, values, present in found])
            order = np.argsort(times, kind="stable")
            return _readings_at(gaps, times[order], elements[order])
    return np.full(len(gaps), np.nan)


def _readings_at(
    gaps: Intervals, times: NDArray[np.int64], elements: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the first reading in each gap: a call that blocks shows the state when it began.

    Without one, it is the last reading before the gap, if that is at most twice as old as readings
    usually lie apart.
    """
    following = np.searchsorted(times, gaps[:, 0])
    inside = (following < len(times)) & (times[np.minimum(following, len(times) - 1)] < gaps[:, 1])
    place = np.where(inside, following, following - 1)
    age = gaps[:, 0] - times[np.maximum(place, 0)]
    # numpy's own median first imports its masked arrays: a hundredth of reading a long profile.
    apart = np.sort(np.diff(times))
    usual = 2.0 * float(apart[len(apart) // 2]) if len(apart) else 0.0
    fresh = (place >= 0) & (age <= usual)
    return np.where(fresh, elements[np.maximum(place, 0)].astype(np.float64), np.nan)


def _doing(
    gaps: Intervals, launches: NextLaunches, calls: LaunchCalls, training: Line | None
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return for each gap the place of a name, or -1; and the names."""
    found = np.full(len(gaps), _NONE, np.int32)
    names: dict[str, int] = {}
    for place, line in enumerate(calls.lines):
        chosen = np.flatnonzero(launches.known & (launches.line_ids == place))
        found[chosen] = _innermost(line, gaps[chosen], names)
    # A thread that only launches shows nothing else; the reason is on the training thread.
    missing = np.flatnonzero(found == _NONE)
    if training is not None:
        found[missing] = _innermost(training, gaps[missing], names)
    return found, tuple(names)


def _innermost(line: Line, gaps: Intervals, names: dict[str, int]) -> NDArray[np.int32]:
    """Return for each gap the name of the shortest event that covers half of it, or -1.

    Names are given by their places; new ones are added.
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
    """Return the gaps of which each event covers half: the first, and the one behind the last.

    Gaps are disjoint and in order: an event reaches a run of them, and all but the run's first and
    last lie in it wholly.
    """

    def too_little(place: Indices) -> NDArray[np.bool_]:
        at = np.clip(place, 0, len(gaps) - 1)
        inside = np.minimum(end, gaps[at, 1]) - np.maximum(start, gaps[at, 0])
        found: NDArray[np.bool_] = 2 * inside < gaps[at, 1] - gaps[at, 0]
        return found

    first = np.searchsorted(gaps[:, 1], start, side="right")
    behind = np.searchsorted(gaps[:, 0], end, side="left")
    return first + too_little(first), behind - too_little(behind - 1)


def _earliest_run(first: Indices, behind: Indices, count: int) -> Indices:
    """Return for each of `count` places the first run [first, behind) over it; else their number.

    Each run is the union of two spans whose length is a power of two. A table has the first run for
    every span of one length; halving the spans, down to single places, leads to the next.
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
