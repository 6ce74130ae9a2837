"""A memory-mapped list of steps, so that a process killed from outside loses none of them.

Each record is six little-endian signed 64-bit integers: ordinal of the loop, ordinal of the window,
start and duration of the step and the time waited for its batch in nanoseconds, and its batches. A
record with a zero start is empty.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_RECORD = struct.Struct("<6q")
_CAPACITY = 200_000


class StepJournal:
    """Appends in well under a microsecond; the operating system keeps the pages when we die."""

    def __init__(self, path: Path) -> None:
        self._size = _RECORD.size * _CAPACITY
        with path.open("wb+") as file:
            file.truncate(self._size)
            self._map = mmap.mmap(file.fileno(), self._size)
        self._offset = 0

    def append(
        self, loop: int, window: int, start_ns: int, duration_ns: int, wait_ns: int, batches: int
    ) -> None:
        """Write one step; steps past the capacity are left to the recording alone."""
        if self._offset < self._size:
            _RECORD.pack_into(
                self._map, self._offset, loop, window, start_ns, duration_ns, wait_ns, batches
            )
            self._offset += _RECORD.size
