"""A thread that is none of `threading`'s, so that a program counts, and joins, its own alone."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable


class OwnThread:
    """Runs one call; the interpreter does not wait for it when it exits.

    Raises:
        RuntimeError: the process may have no more threads.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._ident: int | None = None
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        self._ident = threading.get_ident()
        try:
            self._call()
        finally:
            del self._call  # and with it all that it holds
            self._ended.release()

    def join(self) -> None:
        """Wait until it is through; called by itself, do nothing."""
        if self._ident != threading.get_ident():
            with self._ended:
                pass
