"""The lines that were folded: all are counted, the first are kept in a file, the last at hand."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from typing import NamedTuple

FRAMEWORK_LOG = "framework.log"
MOST_BYTES = 4 << 20
"""Of the file."""
LAST_LINES = 10
LONGEST_LINE = 1_000
"""Bytes of one of the last."""


class Report(NamedTuple):
    """How many there were so far, and the last of them."""

    lines: int
    last: tuple[str, ...]

    def encoded(self) -> bytes:
        """As one line."""
        return json.dumps(self).encode() + b"\n"

    @classmethod
    def decoded(cls, line: bytes) -> Report:
        """What `encoded` has made."""
        lines, last = json.loads(line)
        return cls(lines, tuple(last))


NOTHING = Report(0, ())


class Kept:
    """Given each line. That the file can't be written is no reason to disturb anybody."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: int | None = None
        self._left = MOST_BYTES
        self._lines = 0
        self._last: deque[bytes] = deque(maxlen=LAST_LINES)

    def __call__(self, line: bytes) -> None:
        self._lines += 1
        self._last.append(line[:LONGEST_LINE])
        with suppress(OSError):
            self._write(line + b"\n")

    def _write(self, line: bytes) -> None:
        if len(line) > self._left:
            self._left = 0
            return
        self._left -= len(line)
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.write(self._file, line)

    def report(self) -> Report:
        """What there is to tell by now."""
        return Report(self._lines, tuple(line.decode(errors="replace") for line in self._last))
