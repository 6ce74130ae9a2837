"""Signals that arrive while pipediag's code runs: errors of handlers, Ctrl-C, broken pipes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from pipediag.capture.callsites import unwrap


def let_pass(error: BaseException) -> None:
    """Raise the error on if a handler of the script's raised it; else do nothing."""
    if is_of_a_signal_handler(error):
        raise error


def is_of_a_signal_handler(error: BaseException) -> bool:
    """Return True if a handler of the script's raised it, which ran while our code was running.

    One that has put another in its own place is not recognised.
    """
    codes = {
        code
        for number in signal.valid_signals()
        if (code := getattr(unwrap(signal.getsignal(number)), "__code__", None)) is not None
    }
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code in codes:
            return True
        traceback = traceback.tb_next
    return False


class HeldInterrupts:
    """Holds SIGINT back from the script's handler, in the main thread alone.

    One of the script's own hears of it afterwards. That of Python does not: the script is over.
    """

    def __init__(self) -> None:
        self._handler: Callable[[int, FrameType | None], object] | None = None
        """The one that is held off; None while nothing is held."""
        self._came = False

    def unblock(self) -> None:
        """Let those through that were blocked until now; one is raised as a KeyboardInterrupt."""
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    def hold(self) -> None:
        """Hold Ctrl-C back from here on; a second call does nothing."""
        handler = signal.getsignal(signal.SIGINT)
        in_main = threading.current_thread() is threading.main_thread()
        if self._handler is None and in_main and callable(handler):
            self._handler = handler
            signal.signal(signal.SIGINT, self._note)

    def release(self) -> None:
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


@contextmanager
def broken_pipes_are_errors() -> Iterator[None]:
    """Have a write of this thread raise BrokenPipeError there, whatever the program does about it.

    Programs may take the default action of SIGPIPE back, which ends the process.
    """
    masked, pipe = signal.pthread_sigmask(signal.SIG_BLOCK, ()), {signal.SIGPIPE}
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, pipe)
        theirs = signal.sigpending() & pipe
        try:
            yield
        finally:
            if not theirs and signal.sigpending() & pipe:
                signal.sigwait(pipe)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
