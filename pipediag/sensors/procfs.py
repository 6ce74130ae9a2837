"""Reading and parsing files of /proc."""

from __future__ import annotations

import os
from contextlib import suppress


def children(pid: int, proc: str) -> list[int]:
    """Processes that a thread of `pid` has started and that are still there."""
    tasks = f"{proc}/{pid}/task"
    found: list[int] = []
    with suppress(OSError):
        for tid in os.listdir(tasks):  # noqa: PTH208  (half the cost of iterdir)
            with suppress(OSError):
                found += map(int, read(f"{tasks}/{tid}/children").split())
    return found


def after_name(stat: bytes) -> list[bytes]:
    """Fields of a stat file that follow the name, which may itself hold spaces and brackets."""
    return stat[stat.rindex(b")") + 2 :].split()


def field(text: bytes, key: bytes) -> int | None:
    """The number that follows `key` in a file of named numbers."""
    start = text.find(key)
    if start < 0:
        return None
    return int(text[start + len(key) :].split(None, 1)[0])


def read(path: str) -> bytes:
    """A file's beginning, at half the cost of opening it as a stream.

    Raises OSError, and ProcessLookupError where it is empty, as files of the dying may be.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return reread(fd)
    finally:
        os.close(fd)


def reread(fd: int) -> bytes:
    """The same, of a file that is kept open."""
    text = os.pread(fd, 8192, 0)
    if not text:
        raise ProcessLookupError("the file is empty")
    return text
