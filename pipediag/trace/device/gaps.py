"""Why a device was idle: every nanosecond of every gap gets exactly one cause.

A gap ends where the device's next activity starts, and the call that launched that activity divides
it. Until the call began, the host was late, and what it did is the cause:

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
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.device.launches import COPY_CALL, NOT_FOUND, LaunchCalls
from pipediag.trace.device.streams import DeviceEvents
from pipediag.trace.events import TraceEvents
from pipediag.trace.host.threads import is_pipeline_thread, named_intervals
from pipediag.trace.intervals import Intervals, covered, intersect, rows, union, without_earlier
from pipediag.vocabulary import GAP_CAUSES, GapCause, StepClass

_PYTHON_OPERATION = re.compile(r"[^\s:]+:(Eager)?PyFunc\w*$")
_Column = NDArray[np.int64]


@dataclass(frozen=True)
class HostActivity:
    """What the host did; the sets overlap, and those that stand first take the time."""

    causes: tuple[tuple[GapCause, Intervals], ...]

    def earlier(self, by_ns: int) -> HostActivity:
        """The same on a clock that is set back."""
        return HostActivity(tuple((cause, spans - by_ns) for cause, spans in self.causes))


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


def host_activity(events: TraceEvents, by_class: dict[StepClass, Intervals]) -> HostActivity:
    """What the host did, from its events and their classes."""
    # tf.data's threads copy ahead, beside the loop.
    lines = [line for line in events.host_lines if not is_pipeline_thread(line)]
    copying = union(*(named_intervals(line, COPY_CALL) for line in lines))
    in_python = union(*(named_intervals(line, _PYTHON_OPERATION) for line in lines))
    return HostActivity(
        causes=(
            ("input", by_class["input_wait"]),
            ("compile", by_class["compile"]),
            ("copy", copying),
            ("sync", by_class["device_wait"]),
            ("python", in_python),
            ("launch", by_class["dispatch"]),
            ("python", by_class["python"]),
        ),
    )


def next_launches(
    gaps: Intervals,
    device: DeviceEvents | None,
    launched_by: NDArray[np.intp],
    calls: LaunchCalls,
) -> NextLaunches:
    """The calls that launched the activities which end the gaps; none where there is no device.

    `launched_by` is the place of each activity's call, as `LaunchCalls.of` gives it. A gap that the
    window's end cuts off ends with the first activity after that.
    """
    nothing = np.zeros(len(gaps), np.int64)
    if device is None or not len(calls) or not len(device.start_ns):
        no = nothing.astype(np.bool_)
        return NextLaunches(no, nothing, nothing, no, nothing.astype(np.int32), nothing)
    following = np.searchsorted(device.start_ns, gaps[:, 1])
    ends_with_work = following < len(device.start_ns)
    following = np.where(ends_with_work, following, 0)
    call = launched_by[following]
    known = ends_with_work & (call != NOT_FOUND)
    return NextLaunches(
        known=known,
        start_ns=np.where(known, calls.start_ns[call], 0),
        end_ns=np.where(known, calls.end_ns[call], 0),
        copies=known & calls.copies[call],
        line_ids=calls.line_ids[call],
        correlation_ids=calls.correlation_ids[call],
    )


def divide_gaps(
    gaps: Intervals, host: HostActivity, launches: NextLaunches, other_devices: Intervals
) -> NDArray[np.int64]:
    """Nanoseconds of each gap by cause, shape (gaps, causes); each row adds up to its gap."""
    start, end = gaps[:, 0], gaps[:, 1]
    called = np.where(launches.known, np.clip(launches.start_ns, start, end), end)
    returned = np.where(launches.known, np.clip(launches.end_ns, called, end), end)
    split = dict.fromkeys(GAP_CAUSES, np.zeros(len(gaps), np.int64))
    for cause, spans in _in_order(host, other_devices):
        split[cause] = split[cause] + covered(spans, rows(start, called))
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


def _in_order(host: HostActivity, other_devices: Intervals) -> list[tuple[GapCause, Intervals]]:
    """The host's sets without overlap, with the time in which it waited for other devices."""
    ordered: list[tuple[GapCause, Intervals]] = []
    for cause, spans in host.causes:
        if cause == "sync":
            ordered.append(("collective", intersect(spans, other_devices)))
        ordered.append((cause, spans))
    ordered.append(("collective", other_devices))
    causes = [cause for cause, _ in ordered]
    return list(zip(causes, without_earlier(spans for _, spans in ordered), strict=True))
