"""Causes of a device's idle time: every nanosecond of every gap gets exactly one.

A gap ends where the device's next activity starts, and the call that launched that activity divides
it. Until the call began, the host was late, and its activity is the cause:

input       the consumer was blocked in GetNext
compile     a function was traced, or the graph or XLA compiled
copy        a thread other than tf.data's was in a copy call of the driver
collective  the training thread waited while another device was busy
sync        the training thread waited for the device
launch      it dispatched operations, or the executor's threads did
python      a Python function ran in the graph, or the training thread was elsewhere in Python
collective  none of these, and another device was busy
unknown     none of these

The call itself is launch, or copy. After it the device had its work and did not begin it: where
another device was busy, that is collective; otherwise launch where the call came after the device
had gone idle, and queued where the work had been waiting since before. Without a call that matches,
as on a CPU, the host's part is the whole gap.
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
from pipediag.trace.threads import TOP, is_pipeline_thread, parents_of
from pipediag.vocabulary import GAP_CAUSES, GapCause, StepClass

_PYTHON_OPERATION = re.compile(r"[^\s:]+:(Eager)?PyFunc\w*$")
_STEP_MARKERS = (STEP_MARKER, "ProfilerStep#")
_NONE = -1

HostCauses = list[tuple[GapCause, Intervals]]
"""Activity of the host; where the sets overlap, the first takes the time."""


def host_causes(events: TraceEvents, by_class: dict[StepClass, Intervals]) -> HostCauses:
    """Return the host's activity, from its events and their classes."""
    # tf.data's threads copy ahead, in parallel with the loop.
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
class DeviceGaps:
    """Gaps of a device in order of time, a row for each; -1 in place of what is not known."""

    spans: Intervals
    split_ns: NDArray[np.int64]
    """Shape (gaps, causes): nanoseconds by cause, columns as in `GAP_CAUSES`."""
    iterator_ids: NDArray[np.intp]
    """The place in `iterators` of the one of the input pipeline that worked longest."""
    iterators: tuple[IteratorKey, ...]
    doing_ids: NDArray[np.int32]
    """The place in `doing_names` of the innermost event of the launching thread that covers half of
    the gap."""
    doing_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.spans)

    @property
    def lengths_ns(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.spans[:, 1] - self.spans[:, 0]
        return lengths

    def by_cause(self) -> dict[GapCause, int]:
        sums = self.split_ns.sum(axis=0).tolist()
        return {cause: ns for cause, ns in zip(GAP_CAUSES, sums, strict=True) if ns}


def explain_gaps(
    gaps: Intervals,
    host: HostCauses,
    other_devices: Intervals,
    start_ns: Times,
    launched_by: NDArray[np.intp],
    calls: LaunchCalls,
    records: Records,
    training: Line | None,
) -> DeviceGaps:
    """Return the gaps of one device with their causes.

    A gap that the window's end cuts off ends with the first activity after that. `start_ns` and
    `launched_by` are the device's activities and their calls; `training` is the thread that
    launches where no call shows it.
    """
    # A gap without a call has the last place, `NOT_FOUND`, in each column.
    call = np.append(launched_by, NOT_FOUND)[np.searchsorted(start_ns, gaps[:, 1])]
    known = call != NOT_FOUND
    split_ns = divide_gaps(
        gaps,
        host,
        other_devices,
        np.where(known, np.append(calls.start_ns, 0)[call], gaps[:, 1]),
        np.where(known, np.append(calls.end_ns, 0)[call], gaps[:, 1]),
        np.append(calls.copies, False)[call],
    )
    line_ids = np.where(known, np.append(calls.line_ids, _NONE)[call], _NONE)
    doing_ids, doing_names = _doing(gaps, line_ids, calls.lines, training)
    return DeviceGaps(
        spans=gaps,
        split_ns=split_ns,
        iterator_ids=_busiest(gaps, records),
        iterators=tuple(records),
        doing_ids=doing_ids,
        doing_names=doing_names,
    )


def divide_gaps(
    gaps: Intervals,
    host: HostCauses,
    other_devices: Intervals,
    call_start_ns: Times,
    call_end_ns: Times,
    copies: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return nanoseconds of each gap by cause, shape (gaps, causes); rows add up to the gaps.

    The call that ended a gap begins where the gap ends if there is none.
    """
    start, end = gaps[:, 0], gaps[:, 1]
    called = np.clip(call_start_ns, start, end)
    returned = np.clip(call_end_ns, called, end)
    ordered: HostCauses = []
    for cause, spans in host:
        if cause == "sync":
            ordered.append(("collective", intersect(spans, other_devices)))
        ordered.append((cause, spans))
    ordered.append(("collective", other_devices))
    split = {cause: np.zeros(len(gaps), np.int64) for cause in GAP_CAUSES}
    before_call = rows(start, called)
    alone = without_earlier(spans for _, spans in ordered)
    for (cause, _), spans in zip(ordered, alone, strict=True):
        split[cause] += covered(spans, before_call)
    split["unknown"] = called - start - np.sum(list(split.values()), axis=0)
    behind_others = covered(other_devices, rows(returned, end))
    late, rest = call_end_ns > start, end - returned - behind_others
    split["copy"] += np.where(copies, returned - called, 0)
    split["launch"] += np.where(copies, 0, returned - called) + np.where(late, rest, 0)
    split["collective"] += behind_others
    split["queued"] = np.where(late, 0, rest)
    return np.column_stack([split[cause] for cause in GAP_CAUSES])


def _busiest(gaps: Intervals, records: Records) -> NDArray[np.intp]:
    if not records or not len(gaps):
        return np.full(len(gaps), _NONE)
    worked = np.column_stack(
        [covered(normalise(*record.work.T), gaps) for record in records.values()]
    )
    busiest: NDArray[np.intp] = np.where(worked.any(axis=1), np.argmax(worked, axis=1), _NONE)
    return busiest


def _doing(
    gaps: Intervals, line_ids: NDArray[np.int32], lines: list[Line], training: Line | None
) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Return for each gap the place of a name, or -1; and the names."""
    found = np.full(len(gaps), _NONE, np.int32)
    names: dict[str, int] = {}

    def look_at(line: Line, chosen: Indices) -> None:
        event = _innermost(line, gaps[chosen])
        inside = np.flatnonzero(event != _NONE)
        keys, which = np.unique(line.name_ids[event[inside]], return_inverse=True)
        of_key = [names.setdefault(line.plane.names[key], len(names)) for key in keys.tolist()]
        found[chosen[inside]] = np.array(of_key, np.int32)[which.reshape(-1)]

    for place, line in enumerate(lines):
        look_at(line, np.flatnonzero(line_ids == place))
    # A thread that only launches shows nothing else; the reason is on the training thread.
    if training is not None:
        look_at(training, np.flatnonzero(found == _NONE))
    return found, tuple(names)


def _innermost(line: Line, gaps: Intervals) -> Indices:
    """Return for each gap the innermost event that covers half of it, or -1."""
    lengths = line.end_ns - line.start_ns
    shortest = int((gaps[:, 1] - gaps[:, 0]).min()) if len(gaps) else 0
    marker = [key for key, name in line.used_names.items() if name.startswith(_STEP_MARKERS)]
    events = np.flatnonzero((2 * lengths >= shortest) & ~line.named(marker))
    start, end = line.start_ns[events], line.end_ns[events]
    # Such an event reaches the middle of the gap: it is the last that began by then, or an earlier
    # one that lasts until then. Times count half nanoseconds, so that an end on the middle does.
    parents = parents_of(2 * start, 2 * end + 1)
    found = np.searchsorted(2 * start, gaps.sum(axis=1), side="right") - 1
    going_on = np.flatnonzero(found != TOP)
    while len(going_on):
        at, gap = found[going_on], gaps[going_on]
        inside = np.minimum(end[at], gap[:, 1]) - np.maximum(start[at], gap[:, 0])
        going_on = going_on[2 * inside < gap[:, 1] - gap[:, 0]]
        found[going_on] = parents[found[going_on]]
        going_on = going_on[found[going_on] != TOP]
    innermost: Indices = np.append(events, _NONE)[found]
    return innermost
