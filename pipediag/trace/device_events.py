"""Events of a device's streams, and the host's calls that launched them.

CUPTI, ROCTracer and Kineto give an activity and its launch the same correlation id. Lines that the
profiler derives from others are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Line, Plane, TraceEvents
from pipediag.trace.intervals import Intervals, normalise
from pipediag.vocabulary import DeviceClass

DEVICE_CLASSES: tuple[DeviceClass, ...] = get_args(DeviceClass)

CORRELATION = "correlation_id"
NOT_FOUND = -1

COPY_CALL = re.compile(r"(cu|cuda|hip)?Memcpy(?! ?D(2|to)D)")
"""Calls that may block while bytes move between host and device. CUPTI names a call after what it
launches: `MemcpyH2D` like the copy itself."""

_DERIVED_LINES = re.compile(
    r"(Steps|XLA (Modules|Ops|TraceMe)|(Framework|TensorFlow) (Ops|Name Scope)"
    r"|Source code|Launch Stats|CUPTI overhead|_counters_)$"
)
_FIRST_DERIVED_ID = 0xDEADBEEF
_DERIVED_IDS = 32

# CUPTI's and Kineto's names, and the kernels with which AMD's runtime copies and fills.
_COPY = re.compile(r"Mem(cpy|set)|Copy(Host|Device)To(Host|Device)|__amd_rocclr_(copy|fill)")
_COLLECTIVE = re.compile(r"(nccl|rccl)", re.IGNORECASE)


def stream_lines(plane: Plane) -> list[Line]:
    """Return a device's streams, without the lines that the profiler derives from them."""
    return [
        line
        for line in plane.lines
        if not _DERIVED_LINES.match(line.name)
        and not 0 <= (line.id & 0xFFFFFFFF) - _FIRST_DERIVED_ID < _DERIVED_IDS
    ]


def device_class(name: str) -> DeviceClass:
    """Return the class of an event on a device's stream, from its name."""
    if _COPY.match(name):
        return "device_copy"
    return "collective" if _COLLECTIVE.search(name) else "device_compute"


@dataclass(frozen=True)
class DeviceEvents:
    """All events of a device's streams, in order of their start."""

    plane: Plane
    lines: list[Line]
    line_ids: NDArray[np.int32]
    """For each event, the place of its line in `lines`."""
    indices: NDArray[np.int64]
    """Its place on that line."""
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name_ids: NDArray[np.int32]
    classes: NDArray[np.int8]
    """The place of its class in `DEVICE_CLASSES`."""

    @cached_property
    def busy(self) -> Intervals:
        return normalise(self.start_ns, self.end_ns)

    def of_class(self, name: DeviceClass) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = self.classes == DEVICE_CLASSES.index(name)
        return chosen

    def running(self, name: DeviceClass) -> Intervals:
        chosen = self.of_class(name)
        return normalise(self.start_ns[chosen], self.end_ns[chosen])

    def within(self, start_ns: int, end_ns: int) -> tuple[DeviceEvents, NDArray[np.bool_]]:
        """Return the events in the window, cut at its edges, and which of all they are."""
        inside = (self.end_ns > start_ns) & (self.start_ns < end_ns)
        # An event without length at the edge of a window without steps is still the device's.
        inside |= (self.start_ns >= start_ns) & (self.end_ns <= end_ns)
        cut = replace(
            self,
            line_ids=self.line_ids[inside],
            indices=self.indices[inside],
            start_ns=np.maximum(self.start_ns[inside], start_ns),
            end_ns=np.minimum(self.end_ns[inside], end_ns),
            name_ids=self.name_ids[inside],
            classes=self.classes[inside],
        )
        return cut, inside


def device_events(plane: Plane) -> DeviceEvents:
    """Return the events of the device's streams."""
    lines = stream_lines(plane)
    start_ns = _column([line.start_ns for line in lines], np.int64)
    order = np.argsort(start_ns, kind="stable")
    counts = [len(line) for line in lines]
    return DeviceEvents(
        plane=plane,
        lines=lines,
        line_ids=np.repeat(np.arange(len(lines), dtype=np.int32), counts)[order],
        indices=_column([np.arange(count) for count in counts], np.int64)[order],
        start_ns=start_ns[order],
        end_ns=_column([line.end_ns for line in lines], np.int64)[order],
        name_ids=_column([line.name_ids for line in lines], np.int32)[order],
        classes=_column([_classes(line) for line in lines], np.int8)[order],
    )


def _classes(line: Line) -> NDArray[np.int8]:
    by_name = np.zeros(len(line.plane.names), np.int8)
    for key, name in line.used_names.items():
        by_name[key] = DEVICE_CLASSES.index(device_class(name))
    # A copy under another name still has the details of a copy.
    by_name[line.names_with("memcpy_details")] = DEVICE_CLASSES.index("device_copy")
    return by_name[line.name_ids]


def _column(parts: Sequence[NDArray[Any]], dtype: type) -> Any:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)


@dataclass(frozen=True)
class LaunchCalls:
    """Every call of the host that started something on a device, by correlation id and start."""

    lines: list[Line]
    correlation_ids: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    line_ids: NDArray[np.int32]
    """The place of the call's line in `lines`."""
    copies: NDArray[np.bool_]
    """True for calls that copy memory from or to the host."""

    def __len__(self) -> int:
        return len(self.correlation_ids)

    def of(self, device: DeviceEvents) -> NDArray[np.intp]:
        """Return the place of each activity's call, or `NOT_FOUND`."""
        found = np.full(len(device.start_ns), NOT_FOUND, np.intp)
        if not len(self):
            return found
        ids = np.zeros(len(found), np.int64)
        present = np.zeros(len(found), np.bool_)
        for place, line in enumerate(device.lines):
            here = np.flatnonzero(device.line_ids == place)
            ids[here], present[here] = line.statistics.integers(CORRELATION, device.indices[here])
        # Of several calls of one id the last is the one: the others lie around it.
        last = np.searchsorted(self.correlation_ids, ids, side="right") - 1
        fits = present & (last >= 0) & (self.correlation_ids[last] == ids)
        found[fits] = last[fits]
        return found


def launch_calls(events: TraceEvents) -> LaunchCalls:
    """Return the launch calls on all threads of the host."""
    lines: list[Line] = []
    columns: list[tuple[NDArray[Any], ...]] = []
    for line in events.host_lines:
        keys = line.names_with(CORRELATION)
        if not keys:
            continue
        indices = line.having(keys)
        ids, present = line.statistics.integers(CORRELATION, indices)
        indices, ids = indices[present], ids[present]
        copying = [key for key in keys if COPY_CALL.match(line.plane.names[key])]
        copies = np.isin(line.name_ids[indices], copying)
        place = np.full(len(indices), len(lines))
        columns.append((ids, line.start_ns[indices], line.end_ns[indices], place, copies))
        lines.append(line)
    ids, start_ns, end_ns, places, copies = (
        _column([column[number] for column in columns], dtype)
        for number, dtype in enumerate((np.int64, np.int64, np.int64, np.int32, np.bool_))
    )
    order = np.lexsort((start_ns, ids))
    return LaunchCalls(
        lines, ids[order], start_ns[order], end_ns[order], places[order], copies[order]
    )
