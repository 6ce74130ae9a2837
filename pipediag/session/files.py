"""Writing a file so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipediag.errors import PipediagError

SESSION_FILE = "session.json"

_WHAT_TO_DO = {
    errno.ENOSPC: "The disk is full. Free some space, or choose another directory with -o.",
    errno.EDQUOT: "Your quota is used up. Free some space, or choose another directory with -o.",
    errno.EACCES: "You may not write there. Choose another directory with -o.",
    errno.EPERM: "You may not write there. Choose another directory with -o.",
    errno.EROFS: "That file system is read-only. Choose another directory with -o.",
    errno.ENOTDIR: "A part of that path is a file. Choose another directory with -o.",
    errno.EEXIST: "A file of that name is in the way. Choose another directory with -o.",
    errno.EISDIR: "A directory of that name is in the way. Remove it, or choose another with -o.",
}


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all. Raises PipediagError like `replacing`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """The same for what is no text."""
    with replacing(path) as file:
        file.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """The file to write to; it takes its place at `path` when the block ends without an error.

    Raises:
        PipediagError: naming the file, why it could not be written and what to do. What was at
            `path` before is still there then.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise PipediagError(why_not_written(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def why_not_written(path: Path, error: OSError) -> str:
    """Return why the file could not be written, and what to do about it."""
    advice = _WHAT_TO_DO.get(error.errno or 0, "Choose another directory with -o.")
    return f"Could not write {path}: {error.strerror or error}. {advice}"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
