"""One measurement at a time on a machine, whichever workers and processes ask for one."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path
from types import TracebackType

LOOK_AGAIN_S = 0.1


class MachineTakenError(Exception):
    """Another process has measured for as long as this one was to wait."""


class MachineLock:
    """Held within a `with` block, or until this process ends, however that comes about.

    It is one for each user and directory of temporary files. Where no lock can be made, as on a
    file system without any, everybody goes on.

    Raises:
        MachineTakenError: it did not come free in so many seconds.
    """

    def __init__(self, wait_s: float, file: Path | None = None) -> None:
        self._wait_s = wait_s
        self._file = file or Path(tempfile.gettempdir()) / f"pipediag-{os.getuid()}.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> int | None:
        """Its descriptor; None where there is no lock."""
        try:
            # A link that somebody else has put there is not followed.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._file, flags, 0o600)
        except OSError:
            return None
        until = time.monotonic() + self._wait_s
        while not self._taken(self._descriptor):
            if time.monotonic() >= until:
                self._close()
                raise MachineTakenError
            time.sleep(LOOK_AGAIN_S)
        return self._descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            # Closing alone would leave it to children that were forked meanwhile.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._close()

    @staticmethod
    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
