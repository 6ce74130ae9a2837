"""What the host sampler saw of the process."""

from __future__ import annotations

from pipediag.session.record import Record
from pipediag.vocabulary import HotThread


class HotLine(Record):
    file: str
    line: int
    function: str
    percent: float
    """Share of the stack samples in which this line of the thread was running."""
    thread: str
    code: str | None = None
    """The source line, where it could be read."""


class GpuUse(Record):
    name: str
    utilisation_percent: float | None
    memory_used_bytes: int | None
    memory_total_bytes: int | None


class Host(Record):
    cpu_percent: float
    """Of the CPUs that the process may use."""
    cores_busy: float
    cores_allowed: float
    cores_of_others: float | None = None
    """CPUs, of those that the process may use, that worked for other programs on the average, or
    for another virtual machine."""
    cores_idle: float | None = None
    """CPUs, of the same, that had nothing to do."""
    threads: dict[str, float]
    """Percent of one core by pool: `tf_data`, `eigen`, `python_main`, `python_other`, `others`."""
    rss_bytes: int
    rss_peak_bytes: int | None = None
    available_bytes: int | None = None
    page_cache_bytes: int | None = None
    io_wait_percent: float | None
    read_bytes_per_s: float | None
    context_switches_per_s: float | None = None
    hot_python: list[HotLine]
    python_source_cpu_ms_per_step: float | None = None
    """CPU time per step of Python threads other than the training loop's."""
    gpus: list[GpuUse] = []
    samples: int = 0
    missing: str | None = None


class HostSample(Record):
    """One reading of the host sampler; the rows of host.csv."""

    at_ms: float
    window: str
    cpu_percent: float
    rss_bytes: int
    available_bytes: int | None
    io_wait_percent: float | None
    read_bytes_per_s: float | None
    pools_percent: dict[str, float]
    gpu_percent: float | None = None


def hot_line(host: Host | None, *threads: HotThread) -> HotLine | None:
    """The line that was seen running most often on threads of these kinds."""
    lines = host.hot_python if host else []
    of_threads = [line for line in lines if line.thread in threads]
    return max(of_threads, key=lambda line: line.percent, default=None)
