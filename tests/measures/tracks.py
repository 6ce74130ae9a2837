"""Hand-made host tracks: one reading every 100 ms of a process with four threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipediag.session.recording import RecordedBlock, RecordedWindow
from pipediag.session.timeline import HostReading, HostTrack, ThreadSeen

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
        "switches": 50 * index,
        "read_bytes": 4000 * index,
        "available_bytes": 9000 - index,
        "page_cache_bytes": 700,
    }
    if index % 5 == 0:
        values |= {
            "machine_ticks": 20 * index,
            "io_wait_ticks": index,
            "allowed_busy_ns": index * 170 * MS,
            "allowed_idle_ns": index * 30 * MS,
            "rss_peak_bytes": 2000,
        }
    return HostReading(**{**values, **overrides})


def make_track(count: int = 21, **overrides: Any) -> HostTrack:
    track = HostTrack(PID, tuple(make_reading(i) for i in range(count)), THREADS)
    return replace(track, **overrides)


def make_host_window(kind: Any, start_ms: int, end_ms: int, steps: int = 0) -> RecordedWindow:
    block = RecordedBlock(durations_ns=[1] * steps)
    return RecordedWindow(kind, "loop", start_ms * MS, end_ms * MS, blocks=[block])


def make_stacks_window(start_ms: int, end_ms: int, steps: int) -> RecordedWindow:
    window = make_host_window("stacks", start_ms, end_ms, steps)
    window.python_thread_cpu_ns = {
        f"MainThread#{PID}": 600 * MS,
        f"Thread-1 (source)#{SOURCE}": 200 * MS,
    }
    return window
