"""Hand-made summaries of profiles and tracks of hosts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pipediag.session.recording import RecordedWindow
from pipediag.session.timeline import HostReading, HostTrack, ThreadSeen
from pipediag.trace.classes import STEP_CLASSES
from pipediag.trace.pipeline import IteratorActivity
from pipediag.trace.steps import StepSplit
from pipediag.trace.summary import TraceSummary


def make_split(steps: int = 10, **ms: float) -> StepSplit:
    """Equal steps, with so many milliseconds in each named class."""
    row = np.array([round(ms.get(name, 0.0) * 1e6) for name in STEP_CLASSES])
    ns = np.tile(row, (steps, 1))
    starts = np.arange(steps) * row.sum()
    windows = np.column_stack((starts, starts + row.sum()))
    return StepSplit(windows, tuple(range(steps)), "markers", ns)


def make_activity(path: str, *names: str, **overrides: Any) -> IteratorActivity:
    return IteratorActivity(path, names, **{"calls": 10, "self_ns": 0, **overrides})


def make_trace(*iterators: IteratorActivity, **overrides: Any) -> TraceSummary:
    values: dict[str, Any] = {
        "path": Path("trace"),
        "host": "vm",
        "format": "xplane",
        "event_count": 70,
        "window_ns": (0, 100_000_000),
        "steps": make_split(input_wait=7.0, device_compute=2.0, dispatch=1.0),
        "iterators": iterators,
        "devices": (),
        "get_next_calls": 10,
    }
    return TraceSummary(**{**values, **overrides})


MS = 1_000_000
PID, BLAS, EIGEN, COMPUTE, RUNNER, SOURCE, MAP, GET_NEXT = range(100, 108)

# In the order in which TensorFlow makes them; names as the kernel shows them.
THREADS = {
    thread.tid: thread
    for thread in (
        ThreadSeen(PID, "python", 10),
        ThreadSeen(BLAS, "python", 12),
        ThreadSeen(EIGEN, "python", 500),
        ThreadSeen(COMPUTE, "tf_Compute", 500),
        ThreadSeen(RUNNER, "tf_graph_runner", 501),
        ThreadSeen(SOURCE, "python", 505),
        ThreadSeen(MAP, "python", 510),
        ThreadSeen(GET_NEXT, "tf_Compute", 640),
    )
}


def make_reading(index: int, **overrides: Any) -> HostReading:
    """In each 100 ms: main 60 ms, a map 30 ms, a source 20 ms, a compute thread 10 ms."""
    spent = {PID: 60 * MS, MAP: 30 * MS, SOURCE: 20 * MS, COMPUTE: 10 * MS}
    values: dict[str, Any] = {
        "at_ns": index * 100 * MS,
        "cpu_ns": index * 120 * MS,
        "rss_bytes": 1000 + index,
        "thread_cpu_ns": spent,
        "read_bytes": 4000 * index,
        "asked_bytes": 5000 * index,
        "available_bytes": 9000 - index,
    }
    if index % 5 == 0:
        values |= {
            "machine_ticks": 20 * index,
            "io_wait_ticks": index,
            "allowed_busy_ns": index * 170 * MS,
            "allowed_idle_ns": index * 30 * MS,
        }
    return HostReading(**{**values, **overrides})


def make_track(count: int = 21, **overrides: Any) -> HostTrack:
    track = HostTrack(PID, tuple(make_reading(i) for i in range(count)), THREADS)
    return replace(track, **overrides)


def make_host_window(kind: Any, start_ms: int, end_ms: int) -> RecordedWindow:
    threads = [PID, SOURCE] if kind == "stacks" else []
    return RecordedWindow(kind, "loop", start_ms * MS, end_ms * MS, python_threads=threads)
