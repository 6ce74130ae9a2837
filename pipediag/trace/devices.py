"""Each device's busy and idle time, its idle gaps, and what the host did in each gap.

Busy is the union of every kernel, copy and set on every stream of the device; a gap is a time in
which no stream has any. On a machine without an accelerator the executor threads' operations take
the device's place, under the name `CPU`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipediag.trace.classes import Activity, StepClass, stream_lines, sweep
from pipediag.trace.intervals import (
    EMPTY,
    Intervals,
    clip,
    covered,
    gaps,
    normalise,
    total,
    union,
)
from pipediag.trace.pipeline import IteratorKey, Records
from pipediag.trace.reader import Plane, TraceEvents

GAP_FLOOR_NS = 5_000
"""Shorter gaps are noise: back-to-back launches on one stream lie 1 to 5 us apart."""

CAUSES: dict[StepClass, str] = {
    "input_wait": "input",
    "device_wait": "sync",
    "compile": "compile",
    "dispatch": "launch",
    "python": "python",
}
UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True)
class Gap:
    """A time in which the device did nothing."""

    start_ns: int
    duration_ns: int
    cause: str
    """What the host did for most of it: input, sync, compile, launch, python or unknown."""
    iterator: IteratorKey | None
    """For input: path and names of the iterator that worked longest in the gap."""


@dataclass(frozen=True)
class DeviceTrace:
    """One device; span = busy + idle, idle = gaps + noise."""

    name: str
    kind: str
    """`gpu` or `cpu`."""
    span_ns: int
    """The marked steps' window; without steps, first start to last end on the device."""
    busy_ns: int
    idle_ns: int
    longest_gap_ns: int
    noise_ns: int
    """Gaps under the floor, summed."""
    gaps: tuple[Gap, ...]
    """At least as long as the floor, in order of time."""


@dataclass(frozen=True)
class _Host:
    """What the host did, to explain gaps with."""

    swept: dict[StepClass, Intervals]
    work: dict[IteratorKey, Intervals]


def device_traces(
    events: TraceEvents, activity: Activity, records: Records, window: tuple[int, int] | None
) -> list[DeviceTrace]:
    """Every device on which something ran, within the window where there is one."""
    host = _Host(
        swept=sweep({name: activity.by_class[name] for name in CAUSES}),
        work={
            key: normalise(*zip(*record.work, strict=True)) if record.work else EMPTY
            for key, record in records.items()
        },
    )
    found = [
        (plane.name.removeprefix("/device:"), "gpu", _busy(plane)) for plane in events.accelerators
    ] or [("CPU", "cpu", activity.by_class["device_compute"])]
    return [
        _describe(name, kind, busy, window or (int(busy[0, 0]), int(busy[-1, 1])), host)
        for name, kind, busy in found
        if len(busy)
    ]


def _busy(plane: Plane) -> Intervals:
    return union(*(normalise(line.start_ns, line.end_ns) for line in stream_lines(plane)))


def _describe(
    name: str,
    kind: str,
    busy: Intervals,
    window: tuple[int, int],
    host: _Host,
) -> DeviceTrace:
    busy = clip(busy, *window)
    idle = gaps(busy, *window)
    lengths = idle[:, 1] - idle[:, 0]
    long = idle[lengths >= GAP_FLOOR_NS]
    return DeviceTrace(
        name=name,
        kind=kind,
        span_ns=window[1] - window[0],
        busy_ns=total(busy),
        idle_ns=total(idle),
        longest_gap_ns=int(lengths.max(initial=0)),
        noise_ns=int(lengths[lengths < GAP_FLOOR_NS].sum()),
        gaps=tuple(_explain(long, host)),
    )


def _explain(idle: Intervals, host: _Host) -> list[Gap]:
    lengths = idle[:, 1] - idle[:, 0]
    columns = [covered(host.swept[name], idle) for name in CAUSES]
    unknown = lengths - np.sum(columns, axis=0)
    largest = np.argmax(np.column_stack((*columns, unknown)), axis=1)
    names = [*CAUSES.values(), UNKNOWN_CAUSE]
    worked = {key: covered(spans, idle) for key, spans in host.work.items()}
    return [
        Gap(
            start_ns=int(idle[row, 0]),
            duration_ns=int(lengths[row]),
            cause=names[largest[row]],
            iterator=_busiest(worked, row) if names[largest[row]] == "input" else None,
        )
        for row in range(len(idle))
    ]


def _busiest(worked: dict[IteratorKey, Intervals], row: int) -> IteratorKey | None:
    best = max(worked, key=lambda key: worked[key][row], default=None)
    return best if best is not None and worked[best][row] else None
