"""What the host sampler read beside the run: counters as the system gives them, nothing computed.

Times are `time.monotonic_ns()`, the clock of the recording's windows.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GpuReading:
    """What the driver said of one GPU."""

    name: str
    utilisation_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None


@dataclass(frozen=True)
class ThreadSeen:
    """A thread of the process, known by the name that the kernel shows (at most 15 characters).

    The name alone does not tell whose thread it is: the kernel refuses a longer one, and the thread
    then keeps the name of the thread that made it.
    """

    tid: int
    name: str
    started_ticks: int
    """Clock ticks from boot to the thread's start; orders threads by age."""


@dataclass(frozen=True)
class HostReading:
    """One reading. Counters are cumulative unless said otherwise; None where not read this time."""

    at_ns: int
    cpu_ns: int
    """CPU time of the process, threads that have ended included."""
    rss_bytes: int
    thread_cpu_ns: dict[int, int] = field(default_factory=dict)
    """CPU time since the reading before, by thread, for threads that ran."""
    children_cpu_ns: int = 0
    """CPU time of the processes that this one started, such as data workers."""
    children: int = 0
    """Number of such processes alive."""
    switches: int | None = None
    """How often a thread was put on a CPU."""
    read_bytes: int | None = None
    """Bytes fetched from storage; the page cache's hits are not among them."""
    available_bytes: int | None = None
    page_cache_bytes: int | None = None
    rss_peak_bytes: int | None = None
    io_wait_ticks: int | None = None
    """Ticks in which a CPU of the machine was idle with disk reads or writes outstanding."""
    machine_ticks: int | None = None
    """Ticks of all CPUs of the machine, idle ones included."""
    allowed_busy_ns: int | None = None
    """Of the CPUs that the process may use, in which one of them worked for whatever program."""
    allowed_idle_ns: int | None = None
    """Of the same CPUs, in which they had nothing to do."""
    gpus: tuple[GpuReading, ...] = ()


@dataclass(frozen=True)
class HostTrack:
    """All readings of one run, oldest first."""

    pid: int
    readings: tuple[HostReading, ...] = ()
    threads: dict[int, ThreadSeen] = field(default_factory=dict)
    missing: str | None = None
    """Why there are no readings; None where there are some."""
