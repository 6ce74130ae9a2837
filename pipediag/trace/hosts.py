"""The profiles of several hosts, summarised in processes of their own.

A file that cannot be read costs its own summary and no other's; so does one whose reading ends the
process: by taking all memory, or because somebody cut the file short while it was mapped.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.trace.device.traces import GAP_FLOOR_NS
from pipediag.trace.framework import Framework, framework_of
from pipediag.trace.profile_files import host_of
from pipediag.trace.reader import TraceFormat, read_profile
from pipediag.trace.summary import TraceSummary, summarise_events

WORTH_PROCESSES_BYTES = 16 << 20
"""A process takes a quarter of a second to start, in which one reads some 20 MB."""

ISOLATED_FROM_BYTES = 256 << 20
"""A single file from that size on is read in a process too, so that its end can be told: reading
takes many times as long as starting a process there."""


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


def summarise_hosts(
    paths: Sequence[Path], *, gap_floor_ns: int = GAP_FLOOR_NS, processes: int | None = None
) -> list[HostSummary]:
    """Each file's summary, or why there is none, in the order of `paths`.

    Args:
        paths: one file for each host.
        gap_floor_ns: shorter gaps are summed apart.
        processes: how many read at once; by itself one for each core and file, and none but this
            one where the files are small.

    A large file is never read in this process.
    """
    count = min(len(paths), _worthwhile(paths) if processes is None else processes)
    if count <= 1 and max(map(_size, paths), default=0) < ISOLATED_FROM_BYTES:
        return _told_apart([_summary(path, gap_floor_ns) for path in paths])
    found = _in_processes(paths, gap_floor_ns, max(count, 1))
    # A process that is killed takes the other ones' files with it: each gets one of its own.
    return _told_apart(
        [
            summary or _in_processes([path], gap_floor_ns, 1)[0] or _killed(path)
            for path, summary in zip(paths, found, strict=True)
        ]
    )


def _told_apart(hosts: list[HostSummary]) -> list[HostSummary]:
    """Files of one name from several directories bear the directory's name too."""
    times = Counter(host.host for host in hosts)
    return [
        replace(host, host=f"{host.path.absolute().parent.name}/{host.host}")
        if times[host.host] > 1
        else host
        for host in hosts
    ]


def _worthwhile(paths: Sequence[Path]) -> int:
    if sum(map(_size, paths)) < WORTH_PROCESSES_BYTES:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _in_processes(paths: Sequence[Path], gap_floor_ns: int, count: int) -> list[HostSummary | None]:
    """Each file's summary; None where a process ended before it was done."""
    # A fork would share this process's locks and threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_leave_interrupts)
    try:
        futures = [pool.submit(_summary, path, gap_floor_ns) for path in paths]
        found: list[HostSummary | None] = []
        for future in futures:
            try:
                found.append(future.result())
            except BrokenProcessPool:
                found.append(None)
        return found
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_interrupts() -> None:
    """Ctrl-C ends a process without a traceback; the parent, which it reaches too, says it all."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _summary(path: Path, gap_floor_ns: int) -> HostSummary:
    try:
        profile = read_profile(path)
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
