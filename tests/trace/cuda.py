"""Profiles of devices by hand, with CUPTI's names of lines, events and statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pipediag.trace.device.traces import DeviceTrace, device_traces
from pipediag.trace.host.classes import classify
from pipediag.trace.pipeline.records import pipeline_records
from tests.trace.builder import LineBuilder, PlaneBuilder, TraceBuilder
from tests.trace.programs import add_programs

US = 1_000
Span = tuple[int, int]
Kind = Literal["H2D", "D2H", "D2D", "P2P"]

_KINDS = {"H2D": ("pageable", "device"), "D2H": ("device", "pinned"), "D2D": ("device", "device")}


class CudaProfile:
    """A host with a training thread, and devices; times in microseconds."""

    def __init__(self, *, old_details: bool = False) -> None:
        self._builder = TraceBuilder()
        self.host = self._builder.host()
        self.training = self.host.line("python")
        self._old_details = old_details
        self._devices: dict[int, PlaneBuilder] = {}
        self._streams: dict[tuple[int, int], LineBuilder] = {}
        self._correlation = 0

    def steps(self, *edges: int) -> None:
        """Pipediag's markers on the training thread, from each edge to the next."""
        for number, start in enumerate(edges[:-1]):
            end = edges[number + 1]
            self.training.event("pipediag_step", start * US, end * US, step_num=number)

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
        details = "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:128,1,1 occ_pct:100"
        self._activity(name, span, device, stream, kernel_details=details, **stats)
        if launch is not None:
            # CUPTI's event of the call bears the kernel's name.
            self._launch(name, launch, device, line)

    def copy(
        self,
        kind: Kind,
        span: Span,
        size: int,
        launch: Span | None = None,
        *,
        device: int = 0,
        stream: int = 14,
    ) -> None:
        """A copy on a stream of its own, and the call that started it."""
        source, target = _KINDS.get(kind, ("device", "device"))
        details = (
            f"size:{size} dest:0 async:1"
            if self._old_details
            else f"kind_src:{source} kind_dst:{target} size:{size} dest:{device} async:1"
        )
        self._activity(f"Memcpy{kind}", span, device, stream, memcpy_details=details)
        if launch is not None:
            self._launch(f"Memcpy{kind}", launch, device, None)

    def programs(self, programs: dict[int, bytes]) -> None:
        """What XLA compiled, by the numbers that kernels give."""
        add_programs(self._builder, programs)

    def devices(self, directory: Path, window: Span | None = None) -> list[DeviceTrace]:
        """What the engine says of every device."""
        events = self._builder.events(directory)
        inside = None if window is None else (window[0] * US, window[1] * US)
        return device_traces(events, classify(events), pipeline_records(events), inside)

    def save(self, directory: Path) -> Path:
        return self._builder.save(directory)

    def _activity(
        self, name: str, span: Span, device: int, stream: int, **stats: str | int
    ) -> None:
        self._correlation += 1
        self._stream(device, stream).event(
            name,
            span[0] * US,
            span[1] * US,
            correlation_id=self._correlation,
            context_id="$$1",
            **stats,
        )

    def _launch(self, name: str, span: Span, device: int, line: LineBuilder | None) -> None:
        (line or self.training).event(
            name,
            span[0] * US,
            span[1] * US,
            correlation_id=self._correlation,
            device_id=device,
        )

    def _stream(self, device: int, stream: int) -> LineBuilder:
        if device not in self._devices:
            plane = self._devices[device] = self._builder.plane(f"/device:GPU:{device}")
            plane.stat("device_vendor", "Nvidia")
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
