"""The profiles of several hosts, summarised in processes of their own.

A file that cannot be read costs its own summary and no other's; so does one whose reading ends the
process: by taking all memory, or because somebody cut the file short while it was mapped.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.interrupts import ends_with_parent
from pipediag.trace.events import TraceEvents
from pipediag.trace.file_bytes import MAPPED_FROM_BYTES
from pipediag.trace.gap_floor import GAP_FLOOR_NS
from pipediag.trace.profile_files import host_of
from pipediag.trace.reader import read_profile
from pipediag.trace.summary import TraceSummary, summarise_events
from pipediag.vocabulary import Framework, TraceFormat

# As in glibc's malloc.h; elsewhere there is neither `mallopt` nor `malloc_trim`.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3


def keep_freed_memory() -> None:
    """Lets the next allocation use what the last one has freed, up to 32 MB of it.

    Columns come and go by the megabyte while a profile is read. glibc gives each of that size back
    to the system, which hands out the next filled with zeros, page by page: with 3 million events,
    a fifth of the time. For processes that do nothing else and then end.
    """
    if (mallopt := _function_of_libc("mallopt")) is not None:
        mallopt(_TRIM_THRESHOLD, 32 << 20)
        mallopt(_TOP_PAD, 4 << 20)
        mallopt(_MMAP_THRESHOLD, 4 << 20)


def give_back_freed_memory() -> None:
    """Gives back what was kept: at the end of a part whose threads have freed memory that the next
    part, in another thread, would not come to use."""
    if (trim := _function_of_libc("malloc_trim")) is not None:
        trim(0)


def _function_of_libc(name: str) -> Callable[..., int] | None:
    """The C library's function of that name, if it has one."""
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except OSError:
        return None


_SIGNS: tuple[tuple[Framework, tuple[str, ...]], ...] = (
    ("pytorch", ("aten::", "ProfilerStep#")),
    # Keras on JAX may take its batches from tf.data: then both have left events.
    ("jax", ("PjitFunction(", "PJRT_LoadedExecutable_Execute")),
)


def framework_of(events: TraceEvents) -> Framework:
    """The framework whose calls the host's threads made; TensorFlow where none shows."""
    for framework, prefixes in _SIGNS:
        for line in events.host_lines:
            if any(name.startswith(prefixes) for name in line.used_names.values()):
                return framework
    return "tensorflow"


_THREADS = Path("/proc/self/task")

APART_FROM_BYTES = MAPPED_FROM_BYTES
"""Of all files together. Below it starting a process takes longer than reading; from it on no file
is read in this process: who looks at a mapped one that somebody cuts short is ended."""


@dataclass(frozen=True)
class HostSummary:
    """One host's profile."""

    path: Path
    host: str
    """Who wrote it, by the file's name."""
    format: TraceFormat
    """By its name, where it could not be read."""
    events: int = 0
    summary: TraceSummary | None = None
    """None where it could not be read."""
    reason: str | None = None
    """Why it could not be read, as a sentence."""
    framework: Framework = "tensorflow"
    warnings: tuple[str, ...] = ()
    """What the profiler, or the reader, noted."""


class HostReading:
    """Profiles that are being read, the large ones by processes of their own; closes these."""

    def __init__(self, paths: Sequence[Path], gap_floor_ns: int, processes: int) -> None:
        self._paths = paths
        self._gap_floor_ns = gap_floor_ns
        self._readers = _Readers(paths, gap_floor_ns, processes) if processes else None

    def __enter__(self) -> HostReading:
        return self

    def __exit__(self, *_: object) -> None:
        if self._readers is not None:
            self._readers.close()

    @property
    def apart(self) -> bool:
        """Other processes read meanwhile."""
        return self._readers is not None

    def summaries(self) -> list[HostSummary]:
        """Each file's summary, or why there is none, in the order of the paths."""
        if self._readers is None:
            return _told_apart([_summary(path, self._gap_floor_ns) for path in self._paths])
        found = zip(self._paths, self._readers.summaries(), strict=True)
        # A process that is killed takes the other ones' files with it: each gets one of its own.
        return _told_apart([summary or self._read_alone(path) for path, summary in found])

    def _read_alone(self, path: Path) -> HostSummary:
        reader = _Readers([path], self._gap_floor_ns, 1)
        try:
            return reader.summaries()[0] or _killed(path)
        finally:
            reader.close()


def reading_hosts(
    paths: Sequence[Path], *, gap_floor_ns: int = GAP_FLOOR_NS, processes: int | None = None
) -> HostReading:
    """Begins to read, and comes back at once.

    Args:
        paths: one file for each host.
        gap_floor_ns: shorter gaps are summed apart.
        processes: how many read at once, 0 for none but this one; by itself one for each core and
            file, and none where the files are small.
    """
    if processes is None:
        large = sum(map(_size, paths)) >= APART_FROM_BYTES
        processes = min(len(paths), _cores()) if large else 0
    return HostReading(paths, gap_floor_ns, processes)


def summarise_hosts(
    paths: Sequence[Path], *, gap_floor_ns: int = GAP_FLOOR_NS, processes: int | None = None
) -> list[HostSummary]:
    """Reads as `reading_hosts` does, and waits for all of it."""
    with reading_hosts(paths, gap_floor_ns=gap_floor_ns, processes=processes) as reading:
        return reading.summaries()


def _told_apart(hosts: list[HostSummary]) -> list[HostSummary]:
    """Files of one name from several directories bear the directory's name too."""
    times = Counter(host.host for host in hosts)
    return [
        replace(host, host=f"{host.path.absolute().parent.name}/{host.host}")
        if times[host.host] > 1
        else host
        for host in hosts
    ]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class _Readers:
    """Processes that read some files."""

    def __init__(self, paths: Sequence[Path], gap_floor_ns: int, count: int) -> None:
        self._pool = ProcessPoolExecutor(
            count,
            mp_context=multiprocessing.get_context(_start_method()),
            initializer=_prepare,
        )
        self._futures: list[Future[HostSummary]] = [
            self._pool.submit(_summary, path, gap_floor_ns) for path in paths
        ]

    def summaries(self) -> list[HostSummary | None]:
        """Each file's summary; None where a process ended before it was done."""
        return [self._summary_of(future) for future in self._futures]

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    @staticmethod
    def _summary_of(future: Future[HostSummary]) -> HostSummary | None:
        try:
            return future.result()
        except BrokenProcessPool:
            return None


def _start_method() -> str:
    """A fork has all that is imported, but also the locks that other threads hold."""
    alone = _THREADS.is_dir() and len(list(_THREADS.iterdir())) == 1
    return "fork" if alone else "spawn"


def _prepare() -> None:
    keep_freed_memory()
    # Ctrl-C ends a process without a traceback; the parent, which it reaches too, says it all.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # It would wait for work for ever.
    ends_with_parent()()


def _summary(path: Path, gap_floor_ns: int) -> HostSummary:
    try:
        profile = read_profile(path)
        give_back_freed_memory()
        summary = summarise_events(profile.events, gap_floor_ns)
    except PipediagError as error:
        return _unread(path, str(error))
    except MemoryError:
        return _unread(path, f"{path} is not read: it takes more memory than there is.")
    return HostSummary(
        path,
        host_of(path),
        profile.format,
        profile.events.event_count,
        summary,
        framework=framework_of(profile.events),
        warnings=tuple(profile.events.warnings),
    )


def _killed(path: Path) -> HostSummary:
    return _unread(
        path,
        f"{path} is not read: the process that read it was killed, as happens where memory runs "
        "out. Record fewer steps, or read it on a larger machine.",
    )


def _unread(path: Path, reason: str) -> HostSummary:
    named: TraceFormat = "kineto" if ".json" in path.name else "xplane"
    return HostSummary(path, host_of(path), named, reason=reason)
