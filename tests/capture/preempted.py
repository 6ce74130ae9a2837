"""A script whose handler of a signal raises, as one does that is told to give its machine back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class PreemptedError(Exception):
    """Of the script's own."""


@contextmanager
def handles_signals() -> Iterator[None]:
    """The script has its handler."""

    def handler(*_: Any) -> None:
        raise PreemptedError

    usual = signal.signal(signal.SIGUSR1, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, usual)


def signal_arrives(*_: Any, **__: Any) -> None:
    """In the middle of what is under way."""
    os.kill(os.getpid(), signal.SIGUSR1)


def raised_by_the_handler() -> PreemptedError:
    """The error that comes of it."""
    with handles_signals():
        try:
            signal_arrives()
        except PreemptedError as error:
            return error
    raise AssertionError
