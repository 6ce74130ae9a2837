"""A profile of one GPU with nanoseconds that are easy to check, and its export."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from pipediag.reporters.perfetto_profile import Exported, write_perfetto
from pipediag.session.findings import Finding
from pipediag.trace.summary import summarise
from tests.trace.builder import TraceBuilder, add_steps

US = 1_000


def gpu_profile() -> TraceBuilder:
    """Two steps of 100 us; the GPU computes from 20.001 to 60 us and from 120 to 160 us."""
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python", 7)
    add_steps(line, 0, 100 * US, 200 * US)
    line.event("cuLaunchKernel", 10 * US, 12 * US, correlation_id=41)
    getter = host.line("tf_data_iterator_get_next/1", 8)
    getter.event("IteratorGetNextOp::DoCompute", 62 * US, 118 * US, id=5)
    getter.event("Iterator::Root", 63 * US, 117 * US, id=1)
    getter.event("Iterator::Root::Map", 64 * US, 116 * US, id=2, parent_id=1, name="parse")
    gpu = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
    gpu.event("gemm", 20 * US + 1, 60 * US, correlation_id=41)
    gpu.event("gemm", 120 * US, 160 * US)
    return builder


class Export:
    """A trace that was written, taken apart again."""

    def __init__(self, path: Path, exported: Exported) -> None:
        self.exported = exported
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            self.text = stream.read()
        content = json.loads(self.text)
        self.other: dict[str, Any] = content["otherData"]
        self.events: list[dict[str, Any]] = content["traceEvents"]
        self.processes = self._names("process_name", "pid")
        self.tracks = self._names("thread_name", "tid")

    def _names(self, kind: str, key: str) -> dict[int, str]:
        named = [event for event in self.events if event["name"] == kind and event["ph"] == "M"]
        return {event[key]: event["args"]["name"] for event in named}

    def slices(self, track: str, process: str = "pipediag") -> list[dict[str, Any]]:
        return [
            event
            for event in self.events
            if event["ph"] == "X"
            and self.processes[event["pid"]] == process
            and self.tracks[event["tid"]] == track
        ]

    def spans(self, track: str, process: str = "pipediag") -> list[tuple[str, float, float]]:
        return [(event["name"], event["ts"], event["dur"]) for event in self.slices(track, process)]


def export(
    builder: TraceBuilder,
    directory: Path,
    *,
    findings: list[Finding] | None = None,
    most_host_events: int = 1000,
) -> Export:
    summary = summarise(builder.save(directory))
    path = directory / "trace.json.gz"
    exported = write_perfetto(path, [("vm", summary)], findings or [], most_host_events)
    return Export(path, exported)
