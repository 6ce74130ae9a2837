"""Errors that a signal handler of the script's raises, which can come at any line of ours."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pipediag.capture.python_functions import locals_of, unwrap


def let_pass(error: BaseException) -> None:
    """Where a handler of the script's raised it, raise it on, as natively; else do nothing."""
    if is_of_a_signal_handler(error):
        raise error


def is_of_a_signal_handler(error: BaseException) -> bool:
    """Whether a handler of the script's raised it, which ran while our code was running."""
    codes = {
        code
        for number in signal.valid_signals()
        if (code := getattr(unwrap(signal.getsignal(number)), "__code__", None)) is not None
    }
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in codes or _was_given_what_it_interrupts(frame):
            return True
        traceback = traceback.tb_next
    return False


def _was_given_what_it_interrupts(frame: FrameType) -> bool:
    """Whether it was called as a handler is: one that has put another in its place is none now."""
    interrupted = frame.f_back
    if interrupted is None:
        return False
    given = list(_arguments(frame))
    return any(one is interrupted for one in given) and any(
        isinstance(one, int) and one in signal.valid_signals() for one in given
    )


def _arguments(frame: FrameType) -> Iterator[Any]:
    code = frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    listed = bool(code.co_flags & inspect.CO_VARARGS)
    if not named and not listed:
        return
    found = locals_of(frame)
    for name in code.co_varnames[:named]:
        yield found.get(name)
    if listed:
        yield from found.get(code.co_varnames[named], ())
