"""Ctrl-C while code of pipediag's runs that stands in for the end of the interpreter."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class HeldInterrupts:
    """Holds SIGINT back from the handler that the script has, in the main thread alone.

    The handler of the script's own hears of it afterwards. That of Python does not: the script is
    over, so nothing would be interrupted but code of ours.
    """

    def __init__(self) -> None:
        self._handler: _Handler | None = None
        """The one that is held off; None while nothing is held."""
        self._came = False

    def unblock(self) -> None:
        """Let those through that whoever started this process had blocked until the script begins.

        Raises:
            KeyboardInterrupt: one had come; it is shown as one before the script's first line.
        """
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    def hold(self) -> None:
        """From here on; a second call does nothing."""
        handler = signal.getsignal(signal.SIGINT)
        in_main = threading.current_thread() is threading.main_thread()
        if self._handler is None and in_main and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
        """Put the handler back, and call it for what came."""
        handler, self._handler = self._handler, None
        came, self._came = self._came, False
        if handler is None:
            return
        signal.signal(signal.SIGINT, handler)
        if came and handler is not signal.default_int_handler:
            signal.raise_signal(signal.SIGINT)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Let Ctrl-C end the block, and no more than that, where it is held around the block."""
        if self._handler is None:
            yield
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        except KeyboardInterrupt:
            self._came = True
        finally:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True
