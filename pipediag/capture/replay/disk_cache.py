"""A cache on disk as a trial has it: filled, and read from the disk rather than from memory.

A trial fills a part of the cache, and what was just written lies in the page cache still. The whole
cache is larger than the memory, so that it would not: its pages are dropped as soon as they are
read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any

from pipediag.capture.replay.elements import read_through
from pipediag.capture.replay.refusal import NotReplayableError

_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_MOUNTS = Path("/proc/self/mountinfo")
_FORGET_EVERY_S = 0.05
"""What is dropped before it was used is what the system has read ahead: a megabyte at most."""
_ENOUGH_BYTES, _ENOUGH_ELEMENTS = 64 << 20, 20_000
"""Few and small elements are written several times, so that a pass over the file takes longer than
that: at 1 GB/s from a disk, and at 5 µs for an element."""
_SHARE_OF_DISK = 0.5


def filled_on_disk(dataset: Any, count: int, element_bytes: int) -> Any:
    """A cache of up to `count` elements over and over, in a directory that goes when it does.

    Raises:
        NotReplayableError: temporary files lie in memory, or the disk lacks room.
    """
    directory = Path(tempfile.mkdtemp(prefix="pipediag-cache-"))
    try:
        size = max(1, count * element_bytes)
        times = max(1, min(_ENOUGH_BYTES // size, _ENOUGH_ELEMENTS // count))
        _refuse_what_does_not_fit(directory, times * size)
        elements = dataset.take(count) if times == 1 else dataset.take(count).cache().repeat(times)
        cached = elements.cache(str(directory / "elements"))
        read_through(cached)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    for file in directory.iterdir():
        _written_out(file)
    over = threading.Event()
    threading.Thread(target=_forget_until, args=(over, directory), daemon=True).start()
    weakref.finalize(cached, _remove, over, directory)
    return cached


def _refuse_what_does_not_fit(directory: Path, size: int) -> None:
    if filesystem_of(directory) in _IN_MEMORY:
        raise NotReplayableError(
            f"Temporary files lie in memory at {directory.parent}; set TMPDIR to a directory on "
            "disk to have a cache on disk tried."
        )
    free = shutil.disk_usage(directory).free
    if size > free * _SHARE_OF_DISK:
        raise NotReplayableError(
            f"The part of the cache that is tried takes about {size / 1e9:.1f} GB, and "
            f"{free / 1e9:.1f} GB are free at {directory.parent}."
        )


def filesystem_of(path: Path) -> str | None:
    """The kind of filesystem that a path lies on; None where the system does not say."""
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for mount in mounts:
        place, _, kind = mount.partition(" - ")
        if place.split()[2] == wanted:
            return kind.split()[0]
    return None


def _written_out(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _forget_until(over: threading.Event, directory: Path) -> None:
    descriptors = [os.open(file, os.O_RDONLY) for file in directory.iterdir()]
    try:
        while not over.wait(_FORGET_EVERY_S):
            for descriptor in descriptors:
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _remove(over: threading.Event, directory: Path) -> None:
    over.set()
    shutil.rmtree(directory, ignore_errors=True)
