"""Reads one process and its threads from /proc, cheaply enough to do so ten times a second.

A reading costs one read for each thread, of a file kept open, and four for the process. What costs
more (names of new threads apart) is read only when asked for: child processes, the switches of
every thread, and the counters of the whole machine.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipediag.sensors import cgroup, procfs
from pipediag.sensors.cpu_ticks import CpuTicks, ticks_of
from pipediag.session.host_track import HostReading, ThreadSeen


class MachineCounters:
    """Memory and disk waits, read through `root`, the place where /proc and /sys are."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._memory_limit = cgroup.memory_limit(root)

    def memory(self) -> tuple[int | None, int | None]:
        """Bytes available to new allocations and bytes of page cache: the group's, if limited."""
        available = cache = None
        with suppress(OSError):
            text = procfs.read(str(self._root / "proc/meminfo"))
            available, cache = (
                procfs.field(text, b"MemAvailable:"),
                procfs.field(text, b"\nCached:"),
            )
        available = None if available is None else available * 1024
        cache = None if cache is None else cache * 1024
        use = None if self._memory_limit is None else cgroup.memory_use(self._root)
        if use is None or self._memory_limit is None:
            return available, cache
        used, group_cache = use
        room = max(0, self._memory_limit - used + group_cache)
        return (room if available is None else min(room, available)), group_cache

    def disk_wait_ticks(self) -> tuple[int | None, int | None]:
        """Ticks in which a CPU waited for the disk, and ticks of all CPUs, idle ones included."""
        with suppress(OSError, ValueError, IndexError):
            machine = procfs.read(str(self._root / "proc/stat")).split(b"\n", 1)[0]
            ticks = [int(field) for field in machine.split()[1:9]]
            return ticks[4], sum(ticks)
        return None, None


# Leaves most of the usual limit of 1024 open files to the rest of the parent.
MAX_OPEN_FILES = 256

# A thread names itself just after it started, so its first names are looked at again.
_NAME_READINGS = 3

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICK_NS = 1_000_000_000 // (os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100)


@dataclass
class _Thread:
    seen: ThreadSeen
    fd: int | None
    readings: int = 0
    cpu_ns: int = 0
    switches: int = 0


class ProcessReader:
    """Counters of the process `pid`, read through `root`, the place where /proc and /sys are.

    `read` raises ProcessLookupError when the process has gone and PermissionError when another
    user's process hides its counters.
    """

    def __init__(self, pid: int, root: Path = Path("/")) -> None:
        self.pid = pid
        self.threads: dict[int, ThreadSeen] = {}
        self._root = root
        self._proc = str(root / "proc")
        self._tasks = f"{self._proc}/{pid}/task"
        self._alive: dict[int, _Thread] = {}
        self._children: dict[int, int] = {}
        self._switches = 0
        self._machine = MachineCounters(root)
        # Nanoseconds where the kernel keeps them, clock ticks elsewhere.
        self._precise = Path(f"{self._tasks}/{pid}/schedstat").exists()

    def read(self, thorough: bool) -> HostReading:
        """One reading; a thorough one also has what changes slowly or costs more to read."""
        at_ns = time.monotonic_ns()
        rss_bytes = self._rss_bytes()
        ran = self._read_threads()
        if thorough:
            self._find_children()
        self._read_children()
        available, cache = self._machine.memory()
        io_wait, ticks = self._machine.disk_wait_ticks() if thorough else (None, None)
        allowed = self._allowed_cpus() if thorough else None
        return HostReading(
            at_ns=at_ns,
            cpu_ns=self._cpu_ns(self.pid),
            rss_bytes=rss_bytes,
            thread_cpu_ns=ran,
            children_cpu_ns=sum(self._children.values()),
            children=len(self._children),
            switches=self._switches if self._precise else None,
            read_bytes=self._read_bytes(),
            available_bytes=available,
            page_cache_bytes=cache,
            rss_peak_bytes=self._rss_peak_bytes() if thorough else None,
            io_wait_ticks=io_wait,
            machine_ticks=ticks,
            allowed_busy_ns=None if allowed is None else allowed.busy * _TICK_NS,
            allowed_idle_ns=None if allowed is None else allowed.idle * _TICK_NS,
        )

    def close(self) -> None:
        for thread in self._alive.values():
            _close(thread.fd)
        self._alive = {}

    def _allowed_cpus(self) -> CpuTicks | None:
        """What the CPUs did that the process may use."""
        try:
            return ticks_of(os.sched_getaffinity(self.pid), self._root)
        except (AttributeError, OSError):
            return None

    def _rss_bytes(self) -> int:
        try:
            resident = int(procfs.read(f"{self._proc}/{self.pid}/statm").split()[1])
        except FileNotFoundError as error:
            raise ProcessLookupError(str(error)) from error
        if not resident:
            raise ProcessLookupError(f"process {self.pid} has ended")
        return resident * _PAGE_BYTES

    def _read_threads(self) -> dict[int, int]:
        """CPU time since the reading before, of each thread that ran."""
        try:
            alive = {int(name) for name in os.listdir(self._tasks)}  # noqa: PTH208  (half the cost)
        except FileNotFoundError as error:
            raise ProcessLookupError(str(error)) from error
        for tid in self._alive.keys() - alive:
            self._forget(tid)
        ran = {}
        for tid in alive:
            try:
                spent = self._read_thread(tid)
            except (FileNotFoundError, ProcessLookupError):
                self._forget(tid)
                continue
            if spent:
                ran[tid] = spent
        return ran

    def _read_thread(self, tid: int) -> int:
        thread = self._alive.get(tid) or self._meet(tid)
        if thread.readings < _NAME_READINGS:
            self._name(thread)
        text = procfs.read(self._cpu_file(tid)) if thread.fd is None else procfs.reread(thread.fd)
        cpu_ns, switches = self._parse(text)
        spent, thread.cpu_ns = cpu_ns - thread.cpu_ns, cpu_ns
        self._switches += switches - thread.switches
        thread.switches = switches
        return spent

    def _meet(self, tid: int) -> _Thread:
        started = int(procfs.after_name(procfs.read(f"{self._tasks}/{tid}/stat"))[19])
        fd = None
        if len(self._alive) < MAX_OPEN_FILES:
            with suppress(OSError):
                fd = os.open(self._cpu_file(tid), os.O_RDONLY | os.O_CLOEXEC)
        thread = _Thread(ThreadSeen(tid, "", started), fd)
        self._alive[tid] = thread
        return thread

    def _name(self, thread: _Thread) -> None:
        tid = thread.seen.tid
        name = procfs.read(f"{self._tasks}/{tid}/comm").decode(errors="replace").rstrip("\n")
        thread.readings += 1
        if name != thread.seen.name:
            thread.seen = ThreadSeen(tid, name, thread.seen.started_ticks)
            self.threads[tid] = thread.seen

    def _forget(self, tid: int) -> None:
        thread = self._alive.pop(tid, None)
        if thread is not None:
            _close(thread.fd)

    def _cpu_file(self, tid: int) -> str:
        return f"{self._tasks}/{tid}/{'schedstat' if self._precise else 'stat'}"

    def _parse(self, text: bytes) -> tuple[int, int]:
        """CPU time in nanoseconds, and how often the thread was put on a CPU."""
        if self._precise:
            on_cpu, _, times = text.split()
            return int(on_cpu), int(times)
        fields = procfs.after_name(text)
        return (int(fields[11]) + int(fields[12])) * _TICK_NS, 0

    def _find_children(self) -> None:
        """Adds processes that this one, or a child of it, has started."""
        generation = [self.pid]
        while generation:
            parent = generation.pop()
            for child in procfs.children(parent, self._proc):
                if child not in self._children:
                    self._children[child] = 0
                generation.append(child)

    def _read_children(self) -> None:
        for child in self._children:
            with suppress(OSError):
                self._children[child] = max(self._children[child], self._cpu_ns(child))

    def _cpu_ns(self, pid: int) -> int:
        """CPU time of a process. Its own clock tells nanoseconds, where the system gives one."""
        if self._root == Path("/"):
            with suppress(OSError):
                # The number by which Linux knows a process's CPU clock (clock_getcpuclockid).
                return time.clock_gettime_ns((~pid << 3) | 2)
        fields = procfs.after_name(procfs.read(f"{self._proc}/{pid}/stat"))
        return (int(fields[11]) + int(fields[12])) * _TICK_NS

    def _read_bytes(self) -> int | None:
        with suppress(OSError):
            return procfs.field(procfs.read(f"{self._proc}/{self.pid}/io"), b"read_bytes:")
        return None

    def _rss_peak_bytes(self) -> int | None:
        with suppress(OSError):
            peak = procfs.field(procfs.read(f"{self._proc}/{self.pid}/status"), b"VmHWM:")
            return None if peak is None else peak * 1024
        return None


def _close(fd: int | None) -> None:
    if fd is not None:
        os.close(fd)
