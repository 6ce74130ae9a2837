"""The host while a loop ran: CPU by thread pool, memory, disk, GPUs, and Python's hot lines.

TensorFlow names its threads, but Linux refuses names of more than 15 characters, and a thread whose
name was refused keeps that of the thread that made it: `python` or `tf_Compute`. So most threads of
tf.data (`tf_data_private_threadpool`, `tf_data_iterator_get_next`) and of Eigen
(`tf_numa_-1_Eigen`) don't show their names, and are recognised by their age. When TensorFlow
starts it makes Eigen's threads, then those of `tf_Compute`, then `tf_graph_runner`; tf.data's come
later, with the first iterator. Seen in TensorFlow 2.21.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean

import numpy as np

from pipediag.measures.recorded_windows import Missing, spans_ns
from pipediag.session.model import Host, HostSample, HotLine
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedStacks, RecordedWindow, Recording
from pipediag.session.timeline import GpuReading, HostReading, HostTrack, ThreadSeen
from pipediag.vocabulary import POOLS, Pool

# TensorFlow's start takes milliseconds; 100 Hz ticks, and a loaded machine, stretch that.
_START_TICKS = 10


def python_threads(windows: Iterable[RecordedWindow]) -> set[int]:
    """Native ids of the threads that Python made, as far as the recording's windows name them.

    Python also lists foreign threads that called back into it, by names that begin with `Dummy-`.
    """
    return {
        int(native_id)
        for window in windows
        for name, _, native_id in (key.rpartition("#") for key in window.python_thread_cpu_ns)
        if not name.startswith("Dummy-")
    }


def thread_pools(track: HostTrack, python_ids: set[int]) -> dict[int, Pool]:
    """The pool of each thread.

    With no `python_ids` nothing tells an unnamed thread of TensorFlow from one of Python, and such
    threads count under `others`.
    """
    start = _runtime_start(track)
    main = track.threads.get(track.pid)
    return {thread.tid: _pool(thread, main, python_ids, start) for thread in track.threads.values()}


_Age = tuple[int, int]


def _age(thread: ThreadSeen) -> _Age:
    return thread.started_ticks, thread.tid


def _runtime_start(track: HostTrack) -> tuple[_Age, _Age] | None:
    """The first and the last thread that TensorFlow's runtime made as it started."""
    compute = sorted(_age(t) for t in track.threads.values() if t.name == "tf_Compute")
    if not compute:
        return None
    first = compute[0]
    # A script that ran an operation of its own before has made the runner before the pools.
    runners = [
        _age(thread)
        for thread in track.threads.values()
        if thread.name == "tf_graph_runner" and _age(thread) > first
    ]
    last = min(runners, default=(first[0] + _START_TICKS, 0))
    return first, last


def _pool(
    thread: ThreadSeen,
    main: ThreadSeen | None,
    python_ids: set[int],
    start: tuple[_Age, _Age] | None,
) -> Pool:
    if main is not None and thread.tid == main.tid:
        return "python_main"
    if thread.tid in python_ids:
        return "python_other"
    if thread.name.startswith("tf_data"):
        return "tf_data"
    inherited = main is not None and thread.name == main.name
    if start is not None and (thread.name == "tf_Compute" or (inherited and python_ids)):
        return _pool_by_age(_age(thread), *start)
    if thread.name.startswith(("tf_", "Eigen")):
        return "eigen"
    return "others"


def _pool_by_age(age: _Age, first: _Age, last: _Age) -> Pool:
    if age > last:
        return "tf_data"
    if age >= (first[0] - _START_TICKS, 0):
        return "eigen"
    return "others"


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
        hot_python=hot_lines(stacks),
        python_source_cpu_ms_per_step=_source_cpu_ms(track.pid, windows),
        gpus=_gpus(inside),
        samples=_samples(track, spans_ns),
    )


def _unread(track: HostTrack, spans_ns: Sequence[WindowNs]) -> Missing | None:
    if track.missing is not None:
        return Missing(track.missing)
    samples = _samples(track, spans_ns)
    if samples >= MIN_SAMPLES:
        return None
    return Missing(
        f"The window of {_length_ns(spans_ns) / 1e6:.0f} ms holds {samples} host samples;"
        f" {MIN_SAMPLES} are needed. More --steps make it longer."
    )


_MOST_LINES = 8
"""Of a call that is written over several lines."""


def _code(file: str, line: int) -> str | None:
    """Return a source line, with those that follow until its brackets are closed."""
    code = linecache.getline(file, line).strip()
    for number in range(line + 1, line + _MOST_LINES):
        if sum(map(code.count, "([{")) <= sum(map(code.count, ")]}")):
            break
        code = f"{code} {linecache.getline(file, number).strip()}".rstrip()
    return code or None


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
        HotLine(
            file=file,
            line=line,
            function=function,
            thread=thread,
            percent=100 * count / total,
            code=_code(file, line),
        )
        for (file, line, function, thread), count in counts.most_common(MAX_HOT_LINES)
    ]


def _source_cpu_ms(pid: int, windows: Sequence[RecordedWindow]) -> float | None:
    """CPU time per step of Python threads beside the training loop's, ours left out."""
    known = [window for window in windows if window.python_thread_cpu_ns]
    steps = sum(len(block.durations_ns) for window in known for block in window.blocks)
    if not steps:
        return None
    spent = 0
    for window in known:
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
    """Return the growth of a counter in the spans; None where it was read less than twice."""
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
    busy = _cores(track, spans_ns, lambda r: r.allowed_busy_ns)
    return None if busy is None else max(0.0, busy - cores_busy)


def _io_wait_percent(track: HostTrack, spans_ns: Sequence[WindowNs]) -> float | None:
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


def _gpus(readings: Sequence[HostReading]) -> list[GpuReading]:
    """Mean utilisation and highest memory of each GPU."""
    asked = [reading.gpus for reading in readings if reading.gpus]
    uses = []
    for of_one in zip(*asked, strict=False):
        busy = [g.utilisation_percent for g in of_one if g.utilisation_percent is not None]
        used = [g.memory_used_bytes for g in of_one if g.memory_used_bytes is not None]
        uses.append(
            GpuReading(
                name=of_one[0].name,
                utilisation_percent=fmean(busy) if busy else None,
                memory_used_bytes=max(used, default=None),
                memory_total_bytes=of_one[0].memory_total_bytes,
            )
        )
    return uses


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
                io_wait_percent=_io_wait_at(asked, reading),
                read_bytes_per_s=_read_bytes_per_s(before, reading, elapsed),
                pools_percent=_pools_at(reading, pools, elapsed, cpu_ns),
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


def _io_wait_at(asked: HostReading | None, reading: HostReading) -> float | None:
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


def _pools_at(
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


def host_of_loop(
    track: HostTrack, recording: Recording, loop: RecordedLoop, cores_allowed: float
) -> Host | Missing:
    """The host in the loop's baseline.

    A baseline that is too short for the sampler is taken together with the stacks window after it,
    in which the script runs on, watched by a thread that samples its stacks.
    """
    spans = spans_ns(recording, loop, "baseline")
    if not spans:
        return Missing("There is no baseline window in which the host could be measured.")
    own = [recorded for recorded in recording.windows if recorded.loop_id == loop.id]
    measure = partial(measure_host, track, stacks=stacks_of(recording, loop), windows=own)
    found = measure(spans, cores_allowed)
    if isinstance(found, Missing):
        found = measure([*spans, *spans_ns(recording, loop, "stacks")], cores_allowed)
    return found


def stacks_of(recording: Recording, loop: RecordedLoop) -> list[RecordedStacks]:
    """The stack samples taken beside the loop."""
    return [stacks for stacks in recording.stacks if stacks.loop_id == loop.id]
