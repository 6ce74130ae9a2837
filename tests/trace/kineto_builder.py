"""Builds Kineto traces by hand: events as PyTorch's profiler writes them, times in microseconds.

Numbers may be given as text, to be written as they are: `"1712195495519689.015"`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipediag.trace.events import TraceEvents
from pipediag.trace.files import read

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

    def text(self, *, bare: bool = False, **document: Any) -> str:
        """The document; `bare` is a list of events alone."""
        listed = f"[{', '.join(self._events)}]"
        if bare:
            return listed
        return f'{json.dumps({"schemaVersion": 1, **document})[:-1]}, "traceEvents": {listed}}}'

    def save(self, directory: Path, name: str = "host_1.pt.trace.json", **document: Any) -> Path:
        path = directory / name
        path.write_text(self.text(**document), encoding="utf-8")
        return path

    def events(self, directory: Path, **document: Any) -> TraceEvents:
        return read(self.save(directory, **document))
