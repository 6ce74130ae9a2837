"""A unified diff that `git apply` and `patch -p1` take."""

from __future__ import annotations

import difflib
import tokenize
from io import BytesIO
from pathlib import Path

_NO_END = "\\ No newline at end of file\n"


def unified(path: str, before: bytes, after: bytes, directory: str | None = None) -> str:
    """The change of one file; its name is relative to a directory where it is below.

    Args:
        path: of the file.
        before: its bytes.
        after: its bytes.
        directory: None is the working directory.
    """
    name = _name(path, directory)
    lines = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_END}" for line in lines)


def _name(path: str, directory: str | None) -> str:
    try:
        return Path(path).relative_to(directory or Path.cwd()).as_posix()
    except (ValueError, OSError):
        return Path(path).as_posix().lstrip("/")


def _lines(content: bytes) -> list[str]:
    """Only what ends lines for `patch` does so: Python's own splitting knows more ends."""
    encoding, _ = tokenize.detect_encoding(BytesIO(content).readline)
    parts = content.decode(encoding.removesuffix("-sig")).split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
