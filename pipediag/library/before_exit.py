"""What of ours is still under way when the program exits: its exit handlers end it, and wait."""

from __future__ import annotations

import atexit
from collections.abc import Callable

_ENDS: dict[object, Callable[[], None]] = {}
_registered: list[object] = []


def before_exit(of: object, end: Callable[[], None]) -> None:
    """Have it called at the program's exit, unless `nothing_left` is said of the same before."""
    _ENDS[of] = end
    if not _registered:
        _registered.append(atexit.register(_end_all))


def nothing_left(of: object) -> None:
    """It is over."""
    _ENDS.pop(of, None)


def _end_all() -> None:
    for end in list(_ENDS.values()):
        end()
