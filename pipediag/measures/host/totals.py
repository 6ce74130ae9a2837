"""What the machine did in a window: CPU by thread pool, memory, disk, GPUs, Python's hot lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from pipediag.measures.host.pools import python_threads, thread_pools
from pipediag.measures.missing import Missing
from pipediag.session.host import GpuUse, Host, HotLine
from pipediag.session.host_track import HostReading, HostTrack
from pipediag.session.recorded_windows import RecordedStacks, RecordedWindow
from pipediag.vocabulary import POOLS, Pool

WindowNs = tuple[int, int]

# With fewer, most of what was read in them lies outside the window.
MIN_SAMPLES = 3

MAX_HOT_LINES = 10

OWN_THREADS = "pipediag"


def measure_host(
    track: HostTrack,
    spans_ns: Sequence[WindowNs],
    cores_allowed: float,
    *,
    stacks: Sequence[RecordedStacks] = (),
    windows: Sequence[RecordedWindow] = (),
) -> Host | Missing:
    """The host in spans of time that begin and end with steps; between them other things happen.

    `cores_allowed` is what affinity and quota leave. `windows` are all those recorded: they name
    the Python threads and say what these cost. Readings that straddle an edge count in proportion.
    """
    unread = _unread(track, spans_ns)
    if unread is not None:
        return unread
    spans = _clip(track, spans_ns)
    start, end = spans[0][0], spans[-1][1]
    inside = [r for r in track.readings if start <= r.at_ns <= end]
    cores_busy = _cores(track, spans, lambda r: r.cpu_ns + r.children_cpu_ns) or 0.0
    return Host(
        cpu_percent=100 * cores_busy / cores_allowed,
        cores_busy=cores_busy,
        cores_allowed=cores_allowed,
        cores_of_others=_cores_of_others(track, spans, cores_busy),
        cores_idle=_cores(track, spans, lambda r: r.allowed_idle_ns),
        threads=_pools_percent(track, spans, python_threads(windows), cores_busy),
        rss_bytes=max(reading.rss_bytes for reading in inside),
        rss_peak_bytes=_highest(track, end),
        available_bytes=_lowest([r.available_bytes for r in inside]),
        page_cache_bytes=inside[-1].page_cache_bytes,
        io_wait_percent=_io_wait_percent(track, spans),
        read_bytes_per_s=_rate(track, spans, lambda r: r.read_bytes),
        context_switches_per_s=_rate(track, spans, lambda r: r.switches),
        involuntary_switches_per_s=_rate(track, spans, lambda r: r.involuntary_switches),
        hot_python=hot_lines(stacks),
        python_source_cpu_ms_per_step=_source_cpu_ms(track.pid, windows),
        gpus=_gpus(inside),
        samples=_samples(track, spans_ns),
    )


def _unread(track: HostTrack, spans_ns: Sequence[WindowNs]) -> Missing | None:
    """Why there is nothing to say of these spans, or None where there is."""
    if track.missing is not None:
        return Missing(track.missing)
    samples = _samples(track, spans_ns)
    if samples >= MIN_SAMPLES:
        return None
    return Missing(
        f"The window of {_length_ns(spans_ns) / 1e6:.0f} ms holds {samples} host samples;"
        f" {MIN_SAMPLES} are needed. More --steps make it longer."
    )


def hot_lines(stacks: Sequence[RecordedStacks]) -> list[HotLine]:
    """The lines of user code that were running most often, the hottest first."""
    total = sum(stack.samples for stack in stacks)
    if not total:
        return []
    counts: Counter[tuple[str, int, str, str]] = Counter()
    for stack in stacks:
        for line in stack.lines:
            counts[line.file, line.line, line.function, line.thread] += line.samples
    return [
        HotLine(file=file, line=line, function=function, thread=thread, percent=100 * count / total)
        for (file, line, function, thread), count in counts.most_common(MAX_HOT_LINES)
    ]


def _source_cpu_ms(pid: int, windows: Sequence[RecordedWindow]) -> float | None:
    """CPU time per step of Python threads beside the training loop's, ours left out."""
    told = [window for window in windows if window.python_thread_cpu_ns]
    steps = sum(len(block.durations_ns) for window in told for block in window.blocks)
    if not steps:
        return None
    spent = 0
    for window in told:
        for key, cpu_ns in window.python_thread_cpu_ns.items():
            name, _, native_id = key.rpartition("#")
            if native_id != str(pid) and not name.startswith(OWN_THREADS):
                spent += cpu_ns
    return spent / 1e6 / steps


def _samples(track: HostTrack, spans_ns: Sequence[WindowNs]) -> int:
    """Times between two readings that touch a span."""
    ends = [reading.at_ns for reading in track.readings]
    return sum(
        any(before < end and after > start for start, end in spans_ns)
        for before, after in pairwise(ends)
    )


def _clip(track: HostTrack, spans_ns: Sequence[WindowNs]) -> list[WindowNs]:
    """The parts of the spans that the readings cover."""
    first, last = track.readings[0].at_ns, track.readings[-1].at_ns
    clipped = [(max(start, first), min(end, last)) for start, end in spans_ns]
    return [(start, end) for start, end in clipped if start < end]


def _length_ns(spans_ns: Sequence[WindowNs]) -> int:
    return sum(end - start for start, end in spans_ns)


def _gain(
    track: HostTrack,
    spans_ns: Sequence[WindowNs],
    counter: Callable[[HostReading], int | None],
) -> float | None:
    """What a cumulative counter gained in the spans; None where it was read less than twice."""
    known = [(r.at_ns, value) for r in track.readings if (value := counter(r)) is not None]
    if len(known) < 2:
        return None
    base, first = known[0]
    at = np.array([ns - base for ns, _ in known], dtype=float)
    values = np.array([value - first for _, value in known], dtype=float)
    edges = np.array([(start - base, end - base) for start, end in spans_ns], dtype=float)
    read = np.interp(edges, at, values)
    return float((read[:, 1] - read[:, 0]).sum())


def _rate(
    track: HostTrack,
    spans_ns: Sequence[WindowNs],
    counter: Callable[[HostReading], int | None],
) -> float | None:
    gain = _gain(track, spans_ns, counter)
    return None if gain is None else gain / (_length_ns(spans_ns) / 1e9)


def _cores(
    track: HostTrack,
    spans_ns: Sequence[WindowNs],
    counter: Callable[[HostReading], int | None],
) -> float | None:
    gain = _gain(track, spans_ns, counter)
    return None if gain is None else gain / _length_ns(spans_ns)


def _cores_of_others(
    track: HostTrack, spans_ns: Sequence[WindowNs], cores_busy: float
) -> float | None:
    """What neither the process nor one that it started had of its CPUs."""
    busy = _cores(track, spans_ns, lambda r: r.allowed_busy_ns)
    return None if busy is None else max(0.0, busy - cores_busy)


def _io_wait_percent(track: HostTrack, spans_ns: Sequence[WindowNs]) -> float | None:
    """Of the time of all CPUs of the machine."""
    waited = _gain(track, spans_ns, lambda r: r.io_wait_ticks)
    ticks = _gain(track, spans_ns, lambda r: r.machine_ticks)
    return None if waited is None or not ticks else 100 * waited / ticks


def _pools_percent(
    track: HostTrack, spans_ns: Sequence[WindowNs], python_ids: set[int], cores_busy: float
) -> dict[str, float]:
    """CPU percent of one core by pool, adding up to the whole process.

    Child processes and threads that lived too briefly to be read are in `others`.
    """
    pools = thread_pools(track, python_ids)
    spent: dict[Pool, float] = dict.fromkeys(POOLS, 0.0)
    for before, reading in pairwise(track.readings):
        overlap = sum(
            max(0, min(end, reading.at_ns) - max(start, before.at_ns)) for start, end in spans_ns
        )
        if not overlap:
            continue
        share = overlap / (reading.at_ns - before.at_ns)
        for tid, cpu_ns in reading.thread_cpu_ns.items():
            spent[pools.get(tid, "others")] += share * cpu_ns
    elapsed = _length_ns(spans_ns)
    percent: dict[str, float] = {pool: 100 * spent[pool] / elapsed for pool in POOLS}
    unread = max(0.0, 100 * cores_busy - sum(percent.values()))
    return {**percent, "others": percent["others"] + unread}


def _lowest(values: Sequence[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _highest(track: HostTrack, end_ns: int) -> int | None:
    """The highest resident memory up to the end of the window, as far as it was read."""
    seen = [reading for reading in track.readings if reading.at_ns <= end_ns]
    peaks = [reading.rss_peak_bytes or reading.rss_bytes for reading in seen]
    return max(peaks, default=None)


def _gpus(readings: Sequence[HostReading]) -> list[GpuUse]:
    """Mean utilisation and highest memory of each GPU."""
    asked = [reading.gpus for reading in readings if reading.gpus]
    uses = []
    for of_one in zip(*asked, strict=False):
        busy = [g.utilisation_percent for g in of_one if g.utilisation_percent is not None]
        used = [g.memory_used_bytes for g in of_one if g.memory_used_bytes is not None]
        uses.append(
            GpuUse(
                name=of_one[0].name,
                utilisation_percent=fmean(busy) if busy else None,
                memory_used_bytes=max(used, default=None),
                memory_total_bytes=of_one[0].memory_total_bytes,
            )
        )
    return uses
