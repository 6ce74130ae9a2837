"""What a device ran: the events of its streams, told apart into kernels, copies and collectives.

Events are told apart one by one, not by their line's name, and lines that the profiler derives from
others are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from pipediag.trace.events import Line, Plane
from pipediag.trace.host.training_graph import names_with
from pipediag.trace.intervals import Intervals, normalise
from pipediag.vocabulary import DeviceClass

DEVICE_CLASSES: tuple[DeviceClass, ...] = get_args(DeviceClass)

_DERIVED_LINES = re.compile(
    r"(Steps|XLA (Modules|Ops|TraceMe)|(Framework|TensorFlow) (Ops|Name Scope)"
    r"|Source code|Launch Stats|CUPTI overhead|_counters_)$"
)
_FIRST_DERIVED_ID = 0xDEADBEEF
_DERIVED_IDS = 32

# CUPTI's and Kineto's names, and the kernels that AMD's runtime copies and fills with.
_COPY = re.compile(r"Mem(cpy|set)|Copy(Host|Device)To(Host|Device)|__amd_rocclr_(copy|fill)")
_COLLECTIVE = re.compile(r"(nccl|rccl)", re.IGNORECASE)


def stream_lines(plane: Plane) -> list[Line]:
    """A device's streams, without the lines that the profiler derives from them."""
    return [
        line
        for line in plane.lines
        if not _DERIVED_LINES.match(line.name)
        and not 0 <= (line.id & 0xFFFFFFFF) - _FIRST_DERIVED_ID < _DERIVED_IDS
    ]


def device_class(name: str) -> DeviceClass:
    """The class of an event on a device's stream, from its name."""
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
    """And its place on that line."""
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    name_ids: NDArray[np.int32]
    classes: NDArray[np.int8]
    """The place of its class in `DEVICE_CLASSES`."""

    @cached_property
    def busy(self) -> Intervals:
        """When any stream of the device had any activity."""
        return normalise(self.start_ns, self.end_ns)

    def of_class(self, name: DeviceClass) -> NDArray[np.bool_]:
        """Which events are of that class."""
        chosen: NDArray[np.bool_] = self.classes == DEVICE_CLASSES.index(name)
        return chosen

    def running(self, name: DeviceClass) -> Intervals:
        """When an event of that class ran."""
        chosen = self.of_class(name)
        return normalise(self.start_ns[chosen], self.end_ns[chosen])

    def integers(self, stat: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """A statistic of every event, and which events have it as an integer."""
        values = np.zeros(len(self.start_ns), np.int64)
        present = np.zeros(len(self.start_ns), np.bool_)
        for place, line in enumerate(self.lines):
            here = np.flatnonzero(self.line_ids == place)
            values[here], present[here] = line.statistics.integers(stat, self.indices[here])
        return values, present


def device_events(plane: Plane) -> DeviceEvents:
    """The events of the device's streams."""
    lines = stream_lines(plane)
    line_ids = np.repeat(np.arange(len(lines), dtype=np.int32), [len(line) for line in lines])
    start_ns = _column([line.start_ns for line in lines], np.int64)
    order = np.argsort(start_ns, kind="stable")
    indices = _column([np.arange(len(line)) for line in lines], np.int64)
    return DeviceEvents(
        plane=plane,
        lines=lines,
        line_ids=line_ids[order],
        indices=indices[order],
        start_ns=start_ns[order],
        end_ns=_column([line.end_ns for line in lines], np.int64)[order],
        name_ids=_column([line.name_ids for line in lines], np.int32)[order],
        classes=_column([_classes(line) for line in lines], np.int8)[order],
    )


def _classes(line: Line) -> NDArray[np.int8]:
    by_name = np.zeros(len(line.plane.names), np.int8)
    for key, name in line.used_names.items():
        by_name[key] = DEVICE_CLASSES.index(device_class(name))
    # A copy under another name still carries the details of a copy.
    by_name[names_with(line, "memcpy_details")] = DEVICE_CLASSES.index("device_copy")
    return by_name[line.name_ids]


def _column(parts: list[Any], dtype: type) -> Any:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype, copy=False)
