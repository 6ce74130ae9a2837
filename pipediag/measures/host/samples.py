"""The host sampler's readings as rows over time, for host.csv and for the chart of the run."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean

from pipediag.measures.host.pools import python_threads, thread_pools
from pipediag.session.host import HostSample
from pipediag.session.host_track import HostReading, HostTrack
from pipediag.session.recorded_windows import RecordedWindow
from pipediag.vocabulary import POOLS, Pool

OUTSIDE = "outside"
_DIGITS = 3
"""Of percent: the system counts CPU in milliseconds at best. All that a division gives would make
host.csv twice as large out of nothing that was measured."""


def host_samples(
    track: HostTrack, windows: Sequence[RecordedWindow], started_ns: int, cores_allowed: float
) -> list[HostSample]:
    """One row for each span between two readings; `at_ms` is its end, since `started_ns`.

    `window` is the kind of the window in which the middle of the span lies, or `outside`. Disk
    waits and GPU utilisation are read more rarely than the rest and are None in between.
    """
    pools = thread_pools(track, python_threads(windows))
    rows = []
    asked: HostReading | None = track.readings[0] if track.readings else None
    for before, reading in pairwise(track.readings):
        elapsed = reading.at_ns - before.at_ns
        if elapsed <= 0:
            continue
        cpu_ns = _cpu_ns(reading) - _cpu_ns(before)
        rows.append(
            HostSample(
                at_ms=(reading.at_ns - started_ns) / 1e6,
                window=_window_at(windows, (before.at_ns + reading.at_ns) // 2),
                cpu_percent=round(100 * cpu_ns / elapsed / cores_allowed, _DIGITS),
                rss_bytes=reading.rss_bytes,
                available_bytes=reading.available_bytes,
                io_wait_percent=_io_wait_percent(asked, reading),
                read_bytes_per_s=_read_bytes_per_s(before, reading, elapsed),
                pools_percent=_pools_percent(reading, pools, elapsed, cpu_ns),
                gpu_percent=_gpu_percent(reading),
            )
        )
        if reading.machine_ticks is not None:
            asked = reading
    return rows


def _cpu_ns(reading: HostReading) -> int:
    return reading.cpu_ns + reading.children_cpu_ns


def _window_at(windows: Sequence[RecordedWindow], at_ns: int) -> str:
    return next((w.kind for w in windows if w.start_ns <= at_ns < w.end_ns), OUTSIDE)


def _io_wait_percent(asked: HostReading | None, reading: HostReading) -> float | None:
    """Since the last reading that asked the machine for its counters."""
    if asked is None or asked.machine_ticks is None or reading.machine_ticks is None:
        return None
    ticks = reading.machine_ticks - asked.machine_ticks
    waited = (reading.io_wait_ticks or 0) - (asked.io_wait_ticks or 0)
    return round(100 * max(0, waited) / ticks, _DIGITS) if ticks > 0 else None


def _read_bytes_per_s(before: HostReading, reading: HostReading, elapsed_ns: int) -> float | None:
    if before.read_bytes is None or reading.read_bytes is None:
        return None
    return round((reading.read_bytes - before.read_bytes) / (elapsed_ns / 1e9), _DIGITS)


def _pools_percent(
    reading: HostReading, pools: dict[int, Pool], elapsed_ns: int, cpu_ns: int
) -> dict[str, float]:
    spent = dict.fromkeys(POOLS, 0)
    for tid, thread_ns in reading.thread_cpu_ns.items():
        spent[pools.get(tid, "others")] += thread_ns
    spent["others"] += max(0, cpu_ns - sum(spent.values()))
    return {pool: round(100 * ns / elapsed_ns, _DIGITS) for pool, ns in spent.items()}


def _gpu_percent(reading: HostReading) -> float | None:
    """Mean over the GPUs."""
    busy = [g.utilisation_percent for g in reading.gpus if g.utilisation_percent is not None]
    return round(fmean(busy), _DIGITS) if busy else None
