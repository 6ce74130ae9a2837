"""Writing to a pipe whose reader may be gone, in a program that dies of the signal for that."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNAL = {signal.SIGPIPE}


@contextmanager
def broken_pipes_are_errors() -> Iterator[None]:
    """Have a write of this thread raise BrokenPipeError there, whatever the program does about it.

    Python ignores SIGPIPE, but programs may take its default action back, which ends the process,
    or have a handler of their own: that pipe is none of theirs.
    """
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNAL)
        theirs = signal.sigpending() & _SIGNAL
        try:
            yield
        finally:
            if not theirs and signal.sigpending() & _SIGNAL:
                signal.sigwait(_SIGNAL)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)
