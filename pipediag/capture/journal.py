"""A memory-mapped list of steps, so that a process killed from outside loses none of them.

A `JOURNAL_RECORD` with a zero start is empty.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from pipediag.session.settings import JOURNAL_RECORD

_CAPACITY = 200_000


class StepJournal:
    """Appends in well under a microsecond; the operating system keeps the pages when we die."""

    def __init__(self, pages: mmap.mmap | None) -> None:
        self._pages = pages
        self._size = len(pages) if pages is not None else 0
        self._offset = 0

    def append(
        self, loop: int, window: int, start_ns: int, duration_ns: int, wait_ns: int, batches: int
    ) -> None:
        """Write one step; steps past the capacity are left to the recording alone."""
        if self._pages is not None and self._offset < self._size:
            JOURNAL_RECORD.pack_into(
                self._pages, self._offset, loop, window, start_ns, duration_ns, wait_ns, batches
            )
            self._offset += JOURNAL_RECORD.size


def open_journal(path: Path) -> StepJournal:
    """A journal on disk; one that keeps nothing where the disk has no room for it.

    The room is claimed at once: a page that can't be written later would kill the process.
    """
    size = JOURNAL_RECORD.size * _CAPACITY
    try:
        with path.open("wb+") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return StepJournal(mmap.mmap(file.fileno(), size))
    except (OSError, AttributeError):
        path.unlink(missing_ok=True)
        return StepJournal(None)
