"""Writing a file so that a reader sees the old one or the new one, never half of one."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from pipediag.encoding import without_surrogates
from pipediag.errors import PipediagError

SESSION_FILE = "session.json"

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises PipediagError like `replacing`."""
    with replacing(path) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def replacing(path: Path, before: os.stat_result | None = None) -> Iterator[BinaryIO]:
    """Yield the file to write to, which moves to `path` when the block ends without an error.

    It gets the mode of a new file, or mode and owner of the one that was there `before`. Raises
    PipediagError, which says what to do; what was at `path` is still there then.
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
        if before is None:
            os.umask(mask := os.umask(0))
            mode = 0o666 & ~mask
        else:
            mode = stat.S_IMODE(before.st_mode)
            with suppress(OSError):  # nor where the user is not known to a container
                os.chown(temporary, before.st_uid, before.st_gid)
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise PipediagError(why_not_written(path, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def why_not_written(path: Path, error: OSError) -> str:
    """Return why the file could not be written, and what to do about it."""
    advice = "Free some space, or choose" if error.errno in _FULL else "Choose"
    reason = error.strerror or error
    return f"Could not write {path}: {reason}. {advice} another directory with -o."


MOST_BYTES = 128 * 2**20
"""A session of half a million steps is smaller; one of this size takes gigabytes to read."""
LARGEST = 2.0**64
"""Limit: no count or time is greater. Sums of numbers up to it cannot overflow."""
_LONGEST_NUMBER = 20
"""Digits that a message shows."""
_PERHAPS_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def read_limited(file: Path) -> bytes:
    """Return the file's bytes. Raises PipediagError where it is larger than `MOST_BYTES`."""
    with file.open("rb") as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise PipediagError(
            f"{file} is larger than {MOST_BYTES >> 20} MiB, which is too large for a session, so "
            "it was not read. Name a session.json that `pipediag analyze` wrote."
        )
    return content


def parse_json(content: bytes) -> Any:
    """Return the value, in which every text is one that UTF-8 can hold. Raises ValueError, with the
    end of a sentence, for what is no JSON or no measurement."""
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        value = json.loads(text, parse_float=_within, parse_int=_whole, parse_constant=_within)
        return storable(value) if _PERHAPS_SURROGATE.search(text) else value
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except MemoryError as error:
        raise ValueError("it needs more memory than there is") from error


def _within(digits: str) -> float:
    value = float(digits)
    if not -LARGEST <= value <= LARGEST:  # nor is NaN
        raise ValueError(f"it holds {digits[:_LONGEST_NUMBER]}, which is no possible number")
    return value


def _whole(digits: str) -> int:
    _within(digits)
    return int(digits)


def storable(value: Any) -> Any:
    """Return the same lists, objects and texts, without what UTF-8 cannot hold."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable(item) for item in value]
    return value
