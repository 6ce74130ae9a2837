"""A profile's bytes; large files are mapped, so that only what is looked at takes memory."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections.abc import Callable
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.trace.compression import GZIP, unpacked
from pipediag.trace.malformed import TooLargeError

LARGEST_FILE_BYTES = 1 << 31
"""Protobuf's own limit for one message."""

MAPPED_FROM_BYTES = 1 << 24
"""Smaller files are read at once, and so is text, of which all is looked at: who looks at the part
of a mapped file that somebody has cut off meanwhile is ended by the system."""

_PEEKED_BYTES = 64
_READ_AS_A_WHOLE = (GZIP, b"{", b"[")

Release = Callable[[], None]
"""Gives back the memory of all that has been looked at.

Raises PipediagError where the file has become shorter meanwhile. Called every few megabytes, it
leaves milliseconds in which that is not noticed in time.
"""


def file_bytes(file: Path) -> tuple[memoryview, Release]:
    """The file's content, unpacked where gzip packed it, and how to give its memory back.

    What is released can be looked at again; it is then read from the file again.

    Raises:
        PipediagError: the file cannot be read, is empty, or is no regular file.
        MalformedError, TooLargeError: its gzip stream is damaged, or more than could be read.
    """
    try:
        content = _content(file)
    except OSError as error:
        raise PipediagError(f"Cannot read the profile {file}: {error.strerror}.") from error
    data = memoryview(content)
    if data[:2] == GZIP:
        return unpacked(data), _keep
    return data, _releasing(content, file) if isinstance(content, mmap.mmap) else _keep


def _content(file: Path) -> bytes | mmap.mmap:
    content: bytes | mmap.mmap
    # Opening a FIFO would wait for somebody to write into it.
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb", buffering=0) as stream:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(status.st_mode):
            raise PipediagError(
                f"The profile {file} is no regular file; save its content, and name that file."
            )
        if status.st_size > LARGEST_FILE_BYTES:
            raise TooLargeError(f"{status.st_size / 1e9:.1f} GB are more than a profile can hold")
        if status.st_size < MAPPED_FROM_BYTES:
            content = stream.read(MAPPED_FROM_BYTES) or b""
        elif os.pread(descriptor, _PEEKED_BYTES, 0).lstrip().startswith(_READ_AS_A_WHOLE):
            content = stream.read(status.st_size) or b""
        else:
            content = _mapped(descriptor, status.st_size, file)
    if not content:
        raise PipediagError(f"The profile {file} is empty; record it again.")
    return content


def _mapped(descriptor: int, size: int, file: Path) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise _changed(file) from error


def _changed(file: Path) -> PipediagError:
    return PipediagError(f"The profile {file} changed while it was read; try again.")


def _releasing(mapped: mmap.mmap, file: Path) -> Release:
    def release() -> None:
        if mapped.size() < len(mapped):
            raise _changed(file)
        mapped.madvise(mmap.MADV_DONTNEED)

    return release


def _keep() -> None:
    """Bytes that lie in memory alone have no file to come back from."""
