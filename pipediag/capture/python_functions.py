"""The plain Python function behind what a script passes on, and where that is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of them, for a moment.

    Before Python 3.13 a frame keeps what `f_locals` gave until it is asked again or ends. So it is
    emptied: otherwise an iterator that a frame had in a variable would outlive its epoch, and its
    pipeline go at another moment than natively, which takes up to half a second.
    """
    shown = frame.f_locals
    found = dict(shown)
    if isinstance(shown, dict) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        shown.clear()
    return found


def unwrap(function: Any) -> Any:
    """The plain function behind partials, decorators, bound methods and callable objects."""
    for _ in range(20):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(function, "python_function"):
            function = function.python_function
        elif not hasattr(function, "__code__") and callable(function):
            called = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
            return called if hasattr(called, "__code__") else function
        else:
            break
    return function


def name_of(code: CodeType) -> str:
    """Its name with those of what it is defined in, which Python 3.10 does not keep."""
    return getattr(code, "co_qualname", code.co_name)


def line_of(frame: FrameType) -> int:
    """The line that it is at; between two lines, where it has none, that at which it is defined."""
    line: int | None = frame.f_lineno
    return frame.f_code.co_firstlineno if line is None else line


def source_location(function: Callable[..., Any]) -> str:
    """`file:line name` of a Python function, as the recording names functions."""
    plain = unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", repr(plain))
    return f"{code.co_filename}:{code.co_firstlineno} {name}" if code else name
