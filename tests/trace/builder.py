"""Builds XPlane profiles by hand: exact plane, line, event and statistic names, nanoseconds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from pipediag.trace.events import TraceEvents
from pipediag.trace.files import read
from pipediag.trace.xplane.protobuf import message_class


class LineBuilder:
    """One line; events are given as start and end in nanoseconds."""

    def __init__(self, plane: PlaneBuilder, message: Any) -> None:
        self._plane = plane
        self._message = message

    def event(self, name: str, start: int, end: int, /, **stats: int | float | str) -> LineBuilder:
        event = self._message.events.add(
            metadata_id=self._plane.event_key(name),
            offset_ps=start * 1000,
            duration_ps=(end - start) * 1000,
        )
        for key, value in stats.items():
            self._plane.add_stat(event.stats, key, value)
        return self


class PlaneBuilder:
    """One plane; statistics of text are written by reference, as the profiler does."""

    def __init__(self, message: Any) -> None:
        self._message = message
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}

    def line(self, name: str, line_id: int | None = None, timestamp_ns: int = 0) -> LineBuilder:
        number = len(self._message.lines) + 1 if line_id is None else line_id
        message = self._message.lines.add(id=number, name=name.encode(), timestamp_ns=timestamp_ns)
        return LineBuilder(self, message)

    def event_key(self, name: str) -> int:
        if name not in self._events:
            key = self._events[name] = len(self._events) + 1
            entry = self._message.event_metadata.add(key=key)
            entry.value.name = name.encode()
        return self._events[name]

    def metadata_stat(self, event: str, key: str, value: int | float | str | bytes) -> None:
        """A statistic that every event of that name shares."""
        wanted = self.event_key(event)
        entry = next(item for item in self._message.event_metadata if item.key == wanted)
        self.add_stat(entry.value.stats, key, value)

    def stat(self, key: str, value: int | float | str) -> None:
        """A statistic of the plane itself."""
        self.add_stat(self._message.stats, key, value)

    def add_stat(self, stats: Any, key: str, value: int | float | str | bytes) -> None:
        stat = stats.add(metadata_id=self._stat_key(key))
        if isinstance(value, str):
            stat.ref_value = self._stat_key(value)
        elif isinstance(value, bytes):
            stat.bytes_value = value
        elif isinstance(value, float):
            stat.double_value = value
        else:
            stat.int64_value = value

    def _stat_key(self, name: str) -> int:
        if name not in self._stats:
            key = self._stats[name] = len(self._stats) + 1
            entry = self._message.stat_metadata.add(key=key)
            entry.value.name = name.encode()
        return self._stats[name]


class TraceBuilder:
    """A whole profile."""

    def __init__(self) -> None:
        self._space = message_class("XSpace")()

    def plane(self, name: str) -> PlaneBuilder:
        return PlaneBuilder(self._space.planes.add(name=name.encode()))

    def host(self) -> PlaneBuilder:
        return self.plane("/host:CPU")

    def serialised(self) -> bytes:
        data: bytes = self._space.SerializeToString()
        return data

    def save(self, directory: Path, name: str = "vm.xplane.pb") -> Path:
        path = directory / name
        path.write_bytes(self.serialised())
        return path

    def events(self, directory: Path) -> TraceEvents:
        return read(self.save(directory))


def add_steps(line: LineBuilder, *edges: int) -> None:
    """Pipediag's markers, from each edge to the next."""
    for number, (start, end) in enumerate(pairwise(edges)):
        line.event("pipediag_step", start, end, step_num=number)


def add_graph_call(line: LineBuilder, start: int, end: int, **stats: str) -> None:
    """A call of a tf.function on the training thread, as TensorFlow 2.21 nests it."""
    line.event("train_step", start, end, **(stats or {"tf_function_call": "notTraced-nonXla"}))
    line.event("TFE_Py_ExecuteCancelable", start, end)
    line.event("EagerExecute", start, end, eager_op="__inference_train_step_7", is_func=1)
    line.event("EagerLocalExecute: __inference_train_step_7", start, end)
    line.event("EagerKernelExecute", start, end)
    line.event("KernelAndDeviceFunc::Run", start, end)


def add_eager_call(line: LineBuilder, name: str, start: int, end: int) -> None:
    """An eager operation: 10 ns of wrapper on each side of its kernel."""
    line.event("TFE_Py_FastPathExecute_C", start, end)
    line.event("EagerExecute", start, end, eager_op=name, is_func=0)
    line.event(f"EagerLocalExecute: {name}", start, end)
    line.event("KernelAndDeviceFunc::Run", start + 10, end - 10)
