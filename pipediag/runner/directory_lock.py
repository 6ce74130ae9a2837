"""A directory that one process at a time may write to, without a file in it that says so."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path


class DirectoryLock:
    """Held until it is released or this process ends, however that comes about.

    It belongs to the directory, not to its name, and goes with it when that is renamed. Where the
    file system has no locks, every process gets it.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.is_taken = True
        """Whether it is ours."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.is_taken = False
            self.release()
        except OSError:
            return

    def is_of(self, path: Path) -> bool:
        """Whether the directory is still the one of that name."""
        if self._descriptor is None:
            return False
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        return False

    def release(self) -> None:
        """Let others have it; a second call does nothing."""
        if self._descriptor is not None:
            # Not by closing alone: a process that was forked meanwhile holds it open.
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None
