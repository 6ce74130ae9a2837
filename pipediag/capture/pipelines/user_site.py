"""The user's line that is running, also inside a function that AutoGraph converted."""

from __future__ import annotations

import sys
from typing import Any

from pipediag.capture.callsites import AUTOGRAPH_FILE, CallSite, call_site, is_users


def user_site() -> CallSite | None:
    """Where the user's code is, on the stack of this thread; None where none of it is there.

    In a function that AutoGraph converted, TensorFlow's source map says which line it was.
    """
    if not any(AUTOGRAPH_FILE in frame.f_code.co_filename for frame in _frames()):
        return call_site()
    from tensorflow.python.util import tf_stack

    for frame in reversed(tf_stack.extract_stack()):
        if is_users(frame.filename):
            return CallSite(frame.filename, frame.lineno, frame.name, by_framework=False)
    return call_site()


def user_place() -> tuple[str | None, int | None]:
    """Its file and number; Nones where there is none."""
    site = user_site()
    return (site.file, site.line) if site else (None, None)


def _frames() -> Any:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]
