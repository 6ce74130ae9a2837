"""Counters of one process, its threads and the machine, read from /proc ten times a second.

The sampler is a thread of the parent, so that it never competes for the child's GIL. A reading
costs one read for each thread and four for the process. A thorough one has what costs more: names
of threads, child processes and the counters of the whole machine.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pipediag.sensors.machine import Nvml, memory_limit, memory_use, text_of
from pipediag.session.timeline import HostReading, HostTrack, ThreadSeen


def _stat_fields(stat: bytes) -> list[bytes]:
    """Return the fields after the name, which may itself hold spaces and brackets."""
    return stat[stat.rindex(b")") + 2 :].split()


def _number(text: bytes, key: bytes) -> int:
    """Return the number that follows `key` in a file of named numbers."""
    return int(text.partition(key)[2].split(None, 1)[0])


def read_file(path: str) -> bytes:
    """Return a file's first 8 KiB, at half the cost of opening it as a stream.

    Raises OSError, and ProcessLookupError where it is empty, as that of a dying process may be.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(fd, 8192)
    finally:
        os.close(fd)
    if not text:
        raise ProcessLookupError("the file is empty")
    return text


_IDLE, _DISK = 3, 4
_COUNTED = 8
"""Columns of a CPU in /proc/stat: user, nice, system, idle, waiting for the disk, interrupts, soft
interrupts, stolen by the hypervisor. Guests, behind them, are in the first two already."""


def _read_ticks(root: Path) -> dict[str, list[int]]:
    """Return the ticks of each CPU by its name, and those of all of them as `cpu`."""
    # A line for each CPU, so the file may be longer than what `read_file` gives.
    lines = text_of(root / "proc/stat").splitlines()
    cpus = (line.split() for line in lines if line.startswith("cpu"))
    return {name: [int(one) for one in ticks[:_COUNTED]] for name, *ticks in cpus}


def _busy_and_idle(
    ticks: Mapping[str, Sequence[int]], cpus: Collection[int]
) -> tuple[int, int] | tuple[None, None]:
    """Return busy and idle time of these CPUs, in nanoseconds; None where it is not shown. An idle
    CPU worked for no program and for no other virtual machine."""
    found = [ticks[name] for number in cpus if (name := f"cpu{number}") in ticks]
    whole = sum(map(sum, found))
    idle = sum(cpu[_IDLE] + cpu[_DISK] for cpu in found)
    return ((whole - idle) * _TICK_NS, idle * _TICK_NS) if whole else (None, None)


_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class ProcessReader:
    """Counters of the process `pid`, read through `root`, the place where /proc and /sys are.

    `read` raises OSError when the process has gone, and PermissionError when another user's process
    hides its counters.
    """

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self.pid = pid
        self.threads: dict[int, ThreadSeen] = {}
        self._root = root
        self._proc = str(root / "proc")
        self._tasks = f"{self._proc}/{pid}/task"
        self._threads_ns: dict[int, int] = {}
        self._children: dict[int, int] = {}
        self._memory_limit = memory_limit(root)
        # Nanoseconds where the kernel keeps them, clock ticks elsewhere.
        self._precise = Path(f"{self._tasks}/{pid}/schedstat").exists()

    def read(self, thorough: bool) -> HostReading:
        """Take a reading; a thorough one also has what changes slowly or costs more to read."""
        at_ns = time.monotonic_ns()
        rss_bytes = self._rss_bytes()
        ran = self._read_threads(thorough)
        if thorough:
            self._find_children()
        for child in self._children:
            with suppress(OSError):
                self._children[child] = max(self._children[child], self._cpu_ns(child))
        ticks = _read_ticks(self._root) if thorough else {}
        machine = ticks.get("cpu")
        allowed_busy_ns, allowed_idle_ns = None, None
        with suppress(OSError):
            cpus = os.sched_getaffinity(self.pid) if thorough else ()
            allowed_busy_ns, allowed_idle_ns = _busy_and_idle(ticks, cpus)
        read_bytes, asked_bytes = self._read_bytes()
        return HostReading(
            at_ns=at_ns,
            cpu_ns=self._cpu_ns(self.pid),
            rss_bytes=rss_bytes,
            thread_cpu_ns=ran,
            children_cpu_ns=sum(self._children.values()),
            children=len(self._children),
            read_bytes=read_bytes,
            asked_bytes=asked_bytes,
            available_bytes=self._available_bytes(),
            io_wait_ticks=None if machine is None else machine[_DISK],
            machine_ticks=None if machine is None else sum(machine),
            allowed_busy_ns=allowed_busy_ns,
            allowed_idle_ns=allowed_idle_ns,
        )

    def _available_bytes(self) -> int | None:
        """Return bytes available to new allocations, within the group's limit."""
        try:
            available = _number(read_file(f"{self._proc}/meminfo"), b"MemAvailable:") * 1024
        except (OSError, IndexError):  # sandboxes show less of it
            return None
        if self._memory_limit is None or (use := memory_use(self._root)) is None:
            return available
        used, cache = use
        return min(available, max(0, self._memory_limit - used + cache))

    def _rss_bytes(self) -> int:
        resident = int(read_file(f"{self._proc}/{self.pid}/statm").split()[1])
        if not resident:
            raise ProcessLookupError(f"process {self.pid} has ended")
        return resident * _PAGE_BYTES

    def _read_threads(self, thorough: bool) -> dict[int, int]:
        """Return the CPU time since the last reading, of each thread that ran."""
        before, self._threads_ns = self._threads_ns, {}
        for name in os.listdir(self._tasks):  # noqa: PTH208  (half the cost of iterdir)
            tid = int(name)
            with suppress(FileNotFoundError, ProcessLookupError):
                # A thread names itself just after it started, so its name is looked at again.
                if thorough or tid not in before:
                    self._name(tid, is_new=tid not in before)
                if self._precise:
                    ran_ns = int(read_file(f"{self._tasks}/{tid}/schedstat").split()[0])
                else:
                    ran_ns = _cpu_ns(read_file(f"{self._tasks}/{tid}/stat"))
                self._threads_ns[tid] = ran_ns
        spent = ((tid, ns - before.get(tid, 0)) for tid, ns in self._threads_ns.items())
        return {tid: ns for tid, ns in spent if ns}

    def _name(self, tid: int, *, is_new: bool) -> None:
        name = read_file(f"{self._tasks}/{tid}/comm").decode(errors="replace").rstrip("\n")
        if is_new:
            started = int(_stat_fields(read_file(f"{self._tasks}/{tid}/stat"))[19])
            self.threads[tid] = ThreadSeen(tid, name, started)
        elif name != self.threads[tid].name:
            self.threads[tid] = replace(self.threads[tid], name=name)

    def _find_children(self) -> None:
        """Add processes that this one, or a child of it, has started."""
        parents = [self.pid]
        while parents:
            tasks = f"{self._proc}/{parents.pop()}/task"
            with suppress(OSError):
                for tid in os.listdir(tasks):  # noqa: PTH208  (half the cost of iterdir)
                    with suppress(OSError):
                        parents += map(int, read_file(f"{tasks}/{tid}/children").split())
            self._children.update(dict.fromkeys(set(parents) - self._children.keys(), 0))

    def _cpu_ns(self, pid: int) -> int:
        """Return the CPU time of a process, by its own clock where the system gives one."""
        if self._root == Path("/"):
            with suppress(OSError):
                # The number by which Linux knows a process's CPU clock (clock_getcpuclockid).
                return time.clock_gettime_ns((~pid << 3) | 2)
        return _cpu_ns(read_file(f"{self._proc}/{pid}/stat"))

    def _read_bytes(self) -> tuple[int | None, int | None]:
        """Return the bytes that came from storage, and those that were asked for."""
        try:
            text = read_file(f"{self._proc}/{self.pid}/io")
            return _number(text, b"read_bytes:"), _number(text, b"rchar:")
        except (OSError, IndexError):  # gVisor names one `char:`
            return None, None


def _cpu_ns(stat: bytes) -> int:
    """Return the CPU time that a stat file has in clock ticks."""
    fields = _stat_fields(stat)
    return (int(fields[11]) + int(fields[12])) * _TICK_NS


INTERVAL_S = 0.1

# Of one core, for each of the two kinds. Where a reading takes long (hundreds of threads), readings
# of its kind become rarer.
MAX_CPU_SHARE = 0.01

# A long run is read more rarely as it ages, so that ten hours make some ten thousand readings.
READINGS_PER_AGE = 2000

# Between thorough readings, which also ask the GPUs.
THOROUGH_INTERVAL_S = 0.5


class HostSampler:
    """Samples one process from `start` to `stop`, whatever becomes of that process meanwhile."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._reader: ProcessReader | None = None
        self._readings: list[HostReading] = []
        self._missing: str | None = "The host sampler was not started."
        self._pid = 0

    def start(self, pid: int) -> None:
        """Begin to sample process `pid`; return at once."""
        self._pid = pid
        self._missing = "The process ended before the host sampler could read it."
        self._thread = threading.Thread(target=self._run, name="pipediag-host", daemon=True)
        self._thread.start()

    def stop(self) -> HostTrack:
        """Take a last reading, if the process is still there, and return all of them."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        return self.so_far()

    def so_far(self) -> HostTrack:
        """Return what was read until now."""
        return HostTrack(
            pid=self._pid,
            readings=tuple(self._readings),
            threads=dict(self._reader.threads) if self._reader else {},
            missing=None if self._readings else self._missing,
        )

    def _run(self) -> None:
        self._reader = ProcessReader(self._pid)
        nvml = Nvml()
        try:
            self._sample(self._reader, nvml)
        except PermissionError:
            self._missing = f"Process {self._pid} belongs to another user, who hides its counters."
        except OSError:
            # The process has gone, at whichever file that was noticed.
            return
        finally:
            nvml.close()

    def _sample(self, reader: ProcessReader, nvml: Nvml) -> None:
        started = thorough_due = time.monotonic()
        while True:
            last = self._ended.is_set()
            now, cpu_before = time.monotonic(), time.thread_time()
            thorough = last or now >= thorough_due
            reading = reader.read(thorough)
            gpus = nvml.readings() if thorough else ()
            self._readings.append(replace(reading, gpus=gpus) if gpus else reading)
            if last:
                return
            rest = (time.thread_time() - cpu_before) / MAX_CPU_SHARE
            interval = max(INTERVAL_S, (now - started) / READINGS_PER_AGE)
            if thorough:
                thorough_due = now + max(THOROUGH_INTERVAL_S, rest)
            else:
                interval = max(interval, rest)
            self._ended.wait(interval)
