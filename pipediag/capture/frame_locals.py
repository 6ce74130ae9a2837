"""The local variables of a frame that is running."""

from __future__ import annotations

import inspect
from types import FrameType
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
