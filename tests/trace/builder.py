"""Builds profiles by hand: exact names of planes, lines, events and statistics; nanoseconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipediag.trace.classes import classify
from pipediag.trace.devices import DeviceTrace, device_traces
from pipediag.trace.events import PROGRAMS_PLANE, TraceEvents
from pipediag.trace.files import read
from pipediag.trace.pipeline import pipeline_records
from pipediag.trace.xplane.protobuf import message_classes
from pipediag.vocabulary import GAP_CAUSES


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
        self._space = message_classes()["XSpace"]()

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


Event = tuple[str, int, int] | tuple[str, int, int, dict[str, Any]]
"""Name, start, end, and statistics."""


def host_profile(threads: Mapping[str, Sequence[Event]]) -> TraceBuilder:
    """A host with these events on its threads."""
    builder = TraceBuilder()
    host = builder.host()
    for name, events in threads.items():
        add_events(host.line(name), events)
    return builder


def add_events(line: LineBuilder, events: Sequence[Event]) -> None:
    for name, start, end, *stats in events:
        line.event(name, start, end, **(stats[0] if stats else {}))


def marked_steps(*edges: int) -> list[Event]:
    """Pipediag's markers, from each edge to the next."""
    return [
        ("pipediag_step", start, end, {"step_num": number})
        for number, (start, end) in enumerate(pairwise(edges))
    ]


def graph_call(start: int, end: int, call: str = "notTraced-nonXla") -> list[Event]:
    """A call of a tf.function on the training thread, as TensorFlow 2.21 nests it."""
    return [
        ("train_step", start, end, {"tf_function_call": call}),
        ("TFE_Py_ExecuteCancelable", start, end),
        ("EagerExecute", start, end, {"eager_op": "__inference_train_step_7", "is_func": 1}),
        ("EagerLocalExecute: __inference_train_step_7", start, end),
        ("EagerKernelExecute", start, end),
        ("KernelAndDeviceFunc::Run", start, end),
    ]


def eager_call(name: str, start: int, end: int) -> list[Event]:
    """An eager operation: 10 ns of wrapper on each side of its kernel."""
    return [
        ("TFE_Py_FastPathExecute_C", start, end),
        ("EagerExecute", start, end, {"eager_op": name, "is_func": 0}),
        (f"EagerLocalExecute: {name}", start, end),
        ("KernelAndDeviceFunc::Run", start + 10, end - 10),
    ]


class ComputationBuilder:
    """Instructions, of which the last one is the result."""

    def __init__(self, message: Any, count: list[int]) -> None:
        self._message = message
        self._count = count

    def add(
        self,
        name: str,
        opcode: str,
        operation: str = "",
        operands: Sequence[int] = (),
        calls: ComputationBuilder | None = None,
    ) -> int:
        """An instruction; its operation is given as `scope/name:Type`. Returns its id."""
        self._count[0] += 1
        scope, _, kind = operation.rpartition(":")
        made = self._message.instructions.add(
            name=name.encode(), opcode=opcode.encode(), id=self._count[0], operand_ids=operands
        )
        made.metadata.op_name, made.metadata.op_type = scope.encode(), kind.encode()
        if calls is not None:
            made.called_computation_ids.append(calls.id)
        self._message.root_id = made.id
        return self._count[0]

    @property
    def id(self) -> int:
        found: int = self._message.id
        return found


class ProgramBuilder:
    """One program."""

    def __init__(self) -> None:
        self._message = message_classes()["HloProto"]()
        self._count = [0]

    def computation(self) -> ComputationBuilder:
        """Another one; where instructions call it, it comes first."""
        module = self._message.hlo_module
        number = len(module.computations) + 1
        return ComputationBuilder(module.computations.add(id=number), self._count)

    def serialised(self) -> bytes:
        data: bytes = self._message.SerializeToString()
        return data


def add_programs(builder: TraceBuilder, programs: dict[int, bytes]) -> None:
    """Keep programs in a profile, by the numbers that events give."""
    plane = builder.plane(PROGRAMS_PLANE)
    for number, program in programs.items():
        plane.metadata_stat(f"cluster({number})", "Hlo Proto", program)


US = 1_000
Span = tuple[int, int]


class CudaProfile:
    """A host with a training thread, and devices, with CUPTI's names; times in microseconds."""

    def __init__(self) -> None:
        self._builder = TraceBuilder()
        self.host = self._builder.host()
        self.training = self.host.line("python")
        self._devices: dict[int, PlaneBuilder] = {}
        self._streams: dict[tuple[int, int], LineBuilder] = {}
        self._correlation = 0

    def steps(self, *edges: int) -> None:
        """Pipediag's markers on the training thread, from each edge to the next."""
        add_events(self.training, marked_steps(*(edge * US for edge in edges)))

    def did(self, name: str, start: int, end: int, **stats: int | str) -> None:
        """An event of the training thread."""
        self.training.event(name, start * US, end * US, **stats)

    def kernel(
        self,
        span: Span,
        launch: Span | None = None,
        *,
        name: str = "ampere_sgemm_128x64_nn",
        device: int = 0,
        stream: int = 13,
        line: LineBuilder | None = None,
        **stats: str | int,
    ) -> None:
        """A kernel, and the call that launched it."""
        self._correlation += 1
        start, end = span[0] * US, span[1] * US
        found = self._stream(device, stream)
        found.event(name, start, end, correlation_id=self._correlation, **stats)
        if launch is not None:
            # CUPTI's event of the call bears the kernel's name.
            start, end = launch[0] * US, launch[1] * US
            called = {"correlation_id": self._correlation, "device_id": device}
            (line or self.training).event(name, start, end, **called)

    def copy(self, span: Span, size: int, launch: Span | None = None) -> None:
        """A copy to the device on a stream of its own, and the call that started it."""
        details = f"kind_src:pageable kind_dst:device size:{size} dest:0 async:1"
        self.kernel(span, launch, name="MemcpyH2D", stream=14, memcpy_details=details)

    def programs(self, programs: dict[int, bytes]) -> None:
        """Programs that XLA compiled, by the numbers that kernels give."""
        add_programs(self._builder, programs)

    def devices(self, directory: Path, window: Span | None = None) -> list[DeviceTrace]:
        events = self._builder.events(directory)
        inside = None if window is None else (window[0] * US, window[1] * US)
        return device_traces(events, classify(events), pipeline_records(events), inside)

    def save(self, directory: Path) -> Path:
        return self._builder.save(directory)

    def _stream(self, device: int, stream: int) -> LineBuilder:
        if device not in self._devices:
            plane = self._devices[device] = self._builder.plane(f"/device:GPU:{device}")
            plane.stat("gpu_device_name", "NVIDIA A100-SXM4-40GB")
            plane.stat("compute_cap_major", 8)
            plane.stat("compute_cap_minor", 0)
        if (device, stream) not in self._streams:
            name = f"Stream #{stream}(Kernel,MemcpyH2D)"
            self._streams[device, stream] = self._devices[device].line(name, stream)
        return self._streams[device, stream]


def causes_us(device: DeviceTrace) -> dict[str, int]:
    """Idle time by cause in microseconds."""
    return {cause: ns // US for cause, ns in device.gaps.by_cause().items()}


def main_causes(device: DeviceTrace) -> list[str]:
    """The cause of most of each gap."""
    return [GAP_CAUSES[column] for column in device.gaps.split_ns.argmax(axis=1).tolist()]


def add_annotations(line: LineBuilder, name: str, *spans: tuple[int, int]) -> None:
    """Annotations as Keras and JAX write them, numbered from 1."""
    for number, (start, end) in enumerate(spans, start=1):
        line.event(name, start, end, step_num=number)


HOST_PID = 4242


class KinetoBuilder:
    """One trace; each method adds an event and returns the builder."""

    def __init__(self) -> None:
        self._events: list[str] = []

    def kernel(
        self, name: str, ts: float | str, dur: float | str, *, device: int = 0, stream: int = 7,
        correlation: int = 1, category: str = "kernel", **args: Any,
    ) -> KinetoBuilder:  # fmt: skip
        """Something on a stream: a kernel, or by `category` a copy or a set."""
        said = {"device": device, "stream": stream, "correlation": correlation, **args}
        return self.event(name, ts, dur, cat=category, pid=device, tid=stream, args=said)

    def launch(
        self, ts: float | str, dur: float | str, correlation: int = 1, tid: int = HOST_PID
    ) -> KinetoBuilder:
        """A call of the runtime on the host."""
        args = {"cbid": 211, "correlation": correlation}
        return self.event(
            "cudaLaunchKernel", ts, dur, cat="cuda_runtime", pid=HOST_PID, tid=tid, args=args
        )

    def host(self, name: str, ts: float | str, dur: float | str, **more: Any) -> KinetoBuilder:
        """An operation or an annotation on the host."""
        fields = {"cat": "cpu_op", "pid": HOST_PID, "tid": HOST_PID, "args": {}, **more}
        return self.event(name, ts, dur, **fields)

    def thread_name(self, name: str, tid: int | str = HOST_PID) -> KinetoBuilder:
        fields = {"ph": "M", "name": "thread_name", "pid": HOST_PID, "tid": tid}
        return self.raw(json.dumps({**fields, "args": {"name": name}}))

    def event(self, name: str, ts: Any, dur: Any, **fields: Any) -> KinetoBuilder:
        """Any complete event; a time of None is left out."""
        times = "".join(
            f', "{key}": {value}' for key, value in (("ts", ts), ("dur", dur)) if value is not None
        )
        body = json.dumps({"ph": "X", "name": name, **fields})
        return self.raw(f"{body[:-1]}{times}}}")

    def raw(self, event: str) -> KinetoBuilder:
        """An event as it is written."""
        self._events.append(event)
        return self

    def text(self, **document: Any) -> str:
        listed = f"[{', '.join(self._events)}]"
        return f'{json.dumps({"schemaVersion": 1, **document})[:-1]}, "traceEvents": {listed}}}'

    def save(self, directory: Path, name: str = "host_1.pt.trace.json", **document: Any) -> Path:
        path = directory / name
        path.write_text(self.text(**document), encoding="utf-8")
        return path

    def events(self, directory: Path, **document: Any) -> TraceEvents:
        return read(self.save(directory, **document))
