"""The host while a loop ran: CPU by thread pool, memory, disk, GPUs, and Python's hot lines.

TensorFlow names its threads, but Linux refuses names of more than 15 characters, and a thread whose
name was refused keeps that of the thread that made it: `python` or `tf_Compute`. So most threads of
tf.data and of Eigen are recognised by their age. When TensorFlow starts it makes Eigen's threads,
then those of `tf_Compute`, then `tf_graph_runner`; tf.data's come later, with the first iterator.
Seen in TensorFlow 2.21.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from pipediag.measures.steps import Missing, WindowNs, spans_ns
from pipediag.session.model import Host, HostSample, HotLine
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedStacks, RecordedWindow, Recording
from pipediag.session.timeline import GpuReading, HostReading, HostTrack, ThreadSeen
from pipediag.vocabulary import POOLS, Pool

# TensorFlow's start takes milliseconds; 100 Hz ticks, and a loaded machine, stretch that.
_START_TICKS = 10

# With fewer, most of what was read in them lies outside the window.
MIN_SAMPLES = 3

MAX_HOT_LINES = 10
OUTSIDE = "outside"

_MOST_LINES = 8
"""Most lines that are read of a call written over several lines."""
_DIGITS = 3
"""Decimal places of percents in host.csv: the system counts CPU in milliseconds at best."""

_Counter = Callable[[HostReading], "int | None"]


def _cpu_ns(reading: HostReading) -> int:
    return reading.cpu_ns + reading.children_cpu_ns


def thread_pools(track: HostTrack, python_ids: set[int]) -> dict[int, Pool]:
    """Return the pool of each thread.

    With no `python_ids` nothing tells an unnamed thread of TensorFlow from one of Python, and such
    threads count under `others`.
    """
    main = track.threads.get(track.pid)
    ages = [(thread.name, (thread.started_ticks, thread.tid)) for thread in track.threads.values()]
    first = min((age for name, age in ages if name == "tf_Compute"), default=(0, 0))
    # A script that ran an operation of its own before has made the runner before the pools.
    runners = [age for name, age in ages if name == "tf_graph_runner" and age > first]
    last = min(runners, default=(first[0] + _START_TICKS, 0))

    def pool(thread: ThreadSeen) -> Pool:
        if thread is main:
            return "python_main"
        if thread.tid in python_ids:
            return "python_other"
        if thread.name.startswith("tf_data"):
            return "tf_data"
        inherited = main is not None and thread.name == main.name and python_ids and any(first)
        if thread.name != "tf_Compute" and not inherited:
            return "eigen" if thread.name.startswith(("tf_", "Eigen")) else "others"
        age = thread.started_ticks, thread.tid
        if age > last:
            return "tf_data"
        return "eigen" if age >= (first[0] - _START_TICKS, 0) else "others"

    return {thread.tid: pool(thread) for thread in track.threads.values()}


@dataclass(frozen=True)
class _Spans:
    """The parts of some spans that the readings cover, and counters in them."""

    track: HostTrack
    spans_ns: Sequence[WindowNs]

    @property
    def length_ns(self) -> int:
        return sum(end - start for start, end in self.spans_ns)

    def gain(self, counter: _Counter, per: float = 1.0) -> float | None:
        """Return the growth of a counter; None where it was read less than twice."""
        known = [(r.at_ns, value) for r in self.track.readings if (value := counter(r)) is not None]
        if len(known) < 2:
            return None
        base, first = known[0]
        at = np.array([ns - base for ns, _ in known], dtype=float)
        values = np.array([value - first for _, value in known], dtype=float)
        read = np.interp(np.array(self.spans_ns, dtype=float) - base, at, values)
        return float((read[:, 1] - read[:, 0]).sum()) / per

    def pools_percent(self, python_ids: set[int], cores_busy: float) -> dict[str, float]:
        """Return CPU percent of one core by pool, adding up to the whole process.

        Child processes and threads that lived too briefly to be read are in `others`.
        """
        pools = thread_pools(self.track, python_ids)
        spent: dict[Pool, float] = dict.fromkeys(POOLS, 0.0)
        for before, reading in pairwise(self.track.readings):
            overlap = sum(
                max(0, min(end, reading.at_ns) - max(start, before.at_ns))
                for start, end in self.spans_ns
            )
            share = overlap / (reading.at_ns - before.at_ns) if overlap else 0.0
            for tid, cpu_ns in reading.thread_cpu_ns.items():
                spent[pools.get(tid, "others")] += share * cpu_ns
        percent: dict[str, float] = {pool: 100 * spent[pool] / self.length_ns for pool in POOLS}
        percent["others"] += max(0.0, 100 * cores_busy - sum(percent.values()))
        return percent


def measure_host(
    track: HostTrack,
    spans_ns: Sequence[WindowNs],
    cores_allowed: float,
    *,
    stacks: Sequence[RecordedStacks] = (),
    windows: Sequence[RecordedWindow] = (),
) -> Host | Missing:
    """Return the host in spans of time that begin and end with steps.

    Readings that straddle an edge count in proportion. `cores_allowed` is what affinity and quota
    leave; the `windows` of the loop name the Python threads.
    """
    if track.missing is not None:
        return Missing(track.missing)
    samples = sum(
        any(before.at_ns < end and after.at_ns > start for start, end in spans_ns)
        for before, after in pairwise(track.readings)
    )
    if samples < MIN_SAMPLES:
        return Missing(
            f"The window of {_Spans(track, spans_ns).length_ns / 1e6:.0f} ms holds only {samples} "
            f"host samples, and {MIN_SAMPLES} are needed. Use more --steps for a longer window."
        )
    first, last = track.readings[0].at_ns, track.readings[-1].at_ns
    clipped = [(max(start, first), min(end, last)) for start, end in spans_ns]
    spans = _Spans(track, [(start, end) for start, end in clipped if start < end])
    start, end = spans.spans_ns[0][0], spans.spans_ns[-1][1]
    inside = [reading for reading in track.readings if start <= reading.at_ns <= end]
    available = [one.available_bytes for one in inside if one.available_bytes is not None]
    python_ids = {native_id for window in windows for native_id in window.python_threads}
    ns, seconds = spans.length_ns, spans.length_ns / 1e9
    cores_busy = spans.gain(_cpu_ns, ns) or 0.0
    all_busy = spans.gain(lambda r: r.allowed_busy_ns, ns)
    waited, ticks = spans.gain(lambda r: r.io_wait_ticks), spans.gain(lambda r: r.machine_ticks)
    return Host(
        cpu_percent=100 * cores_busy / cores_allowed,
        cores_busy=cores_busy,
        cores_allowed=cores_allowed,
        cores_of_others=None if all_busy is None else max(0.0, all_busy - cores_busy),
        cores_idle=spans.gain(lambda r: r.allowed_idle_ns, ns),
        threads=spans.pools_percent(python_ids, cores_busy),
        rss_bytes=max(reading.rss_bytes for reading in inside),
        available_bytes=min(available, default=None),
        io_wait_percent=None if waited is None or not ticks else 100 * waited / ticks,
        read_bytes_per_s=spans.gain(lambda r: r.read_bytes, seconds),
        asked_bytes_per_s=spans.gain(lambda r: r.asked_bytes, seconds),
        hot_python=hot_lines(stacks),
        gpus=_gpus(inside),
    )


def hot_lines(stacks: Sequence[RecordedStacks]) -> list[HotLine]:
    """Return the lines of user code that were running most often, the hottest first."""
    total = sum(stack.samples for stack in stacks)
    counts: Counter[tuple[str, int, str, int | None, str]] = Counter()
    for stack in stacks:
        for line in stack.lines:
            at = (line.file, line.line, line.function, line.function_line, line.thread)
            counts[at] += line.samples
    return [
        HotLine(
            file=file,
            line=line,
            function=function,
            function_line=begins,
            thread=thread,
            percent=100 * count / total,
            code=_code(file, line),
        )
        for (file, line, function, begins, thread), count in counts.most_common(MAX_HOT_LINES)
    ]


def _code(file: str, line: int) -> str | None:
    """Return a source line, with those that follow until its brackets are closed."""
    code = linecache.getline(file, line).strip()
    for number in range(line + 1, line + _MOST_LINES):
        if sum(map(code.count, "([{")) <= sum(map(code.count, ")]}")):
            break
        code = f"{code} {linecache.getline(file, number).strip()}".rstrip()
    return code or None


def _gpus(readings: Sequence[HostReading]) -> list[GpuReading]:
    """Return mean utilisation and highest memory of each GPU."""
    asked = [reading.gpus for reading in readings if reading.gpus]
    uses = []
    for of_one in zip(*asked, strict=False):
        busy = [g.utilisation_percent for g in of_one if g.utilisation_percent is not None]
        used = [g.memory_used_bytes for g in of_one if g.memory_used_bytes is not None]
        mean, total = fmean(busy) if busy else None, of_one[0].memory_total_bytes
        uses.append(GpuReading(of_one[0].name, mean, max(used, default=None), total))
    return uses


def host_samples(
    track: HostTrack, windows: Sequence[RecordedWindow], started_ns: int, cores_allowed: float
) -> list[HostSample]:
    """Return a row for each span between two readings; `at_ms` is its end, since `started_ns`.

    `window` is the kind of the window in which the middle of the span lies, or `outside`. Disk
    waits and GPU utilisation are read more rarely than the rest and are None in between.
    """
    rows = []
    # The last reading that asked the machine for its disk waits.
    asked = next(iter(track.readings), None)
    for before, reading in pairwise(track.readings):
        assert asked is not None
        elapsed = reading.at_ns - before.at_ns
        if elapsed <= 0:
            continue
        middle = (before.at_ns + reading.at_ns) // 2
        busy = [g.utilisation_percent for g in reading.gpus if g.utilisation_percent is not None]
        cpu_ns = _cpu_ns(reading) - _cpu_ns(before)
        ticks = _growth(asked.machine_ticks, reading.machine_ticks)
        waited = max(0, _growth(asked.io_wait_ticks, reading.io_wait_ticks) or 0)
        read = _growth(before.read_bytes, reading.read_bytes)
        rows.append(
            HostSample(
                at_ms=(reading.at_ns - started_ns) / 1e6,
                window=next((w.kind for w in windows if w.start_ns <= middle < w.end_ns), OUTSIDE),
                cpu_percent=round(100 * cpu_ns / elapsed / cores_allowed, _DIGITS),
                rss_bytes=reading.rss_bytes,
                available_bytes=reading.available_bytes,
                io_wait_percent=round(100 * waited / ticks, _DIGITS) if ticks else None,
                read_bytes_per_s=None if read is None else round(1e9 * read / elapsed, _DIGITS),
                gpu_percent=round(fmean(busy), _DIGITS) if busy else None,
            )
        )
        if reading.machine_ticks is not None:
            asked = reading
    return rows


def _growth(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def host_of_loop(
    track: HostTrack, recording: Recording, loop: RecordedLoop, cores_allowed: float
) -> Host | Missing:
    """Return the host in the loop's baseline.

    A baseline that is too short for the sampler is taken together with the stacks window after it,
    in which the script runs on, watched by a thread that samples its stacks.
    """
    spans = spans_ns(recording, loop, "baseline")
    if not spans:
        return Missing("There is no baseline window in which the host could be measured.")
    stacks = [stacks for stacks in recording.stacks if stacks.loop_id == loop.id]
    own = [recorded for recorded in recording.windows if recorded.loop_id == loop.id]
    for more in ([], spans_ns(recording, loop, "stacks")):
        found = measure_host(track, [*spans, *more], cores_allowed, stacks=stacks, windows=own)
        if not isinstance(found, Missing):
            break
    return found
