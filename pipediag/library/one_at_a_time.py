"""At most one measurement goes on in a process: two would measure each other."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from pipediag.errors import PipediagError

_LOCK = threading.Lock()
_RUN_BY_COMMAND = (
    "this program is run by `pipediag analyze`, which measures all of it. Nothing was measured by "
    "this call. Run the program by itself, or leave the call out."
)
_ANOTHER = (
    "another analysis is under way in this process. Nothing was measured. Call this one when that "
    "has ended."
)


class _UnderWay:
    """What has the turn, as far as it says how to end it."""

    def __init__(self) -> None:
        self.end_if_over: Callable[[], None] | None = None


_under_way = _UnderWay()


def take_turn(end_if_over: Callable[[], None] | None = None) -> None:
    """Begin to measure; `give_turn_back` has to follow.

    Args:
        end_if_over: called when another one wants its turn: ends what is over and was not told so.

    Raises:
        PipediagError: the command or another call is measuring.
    """
    if "pipediag.child" in sys.modules:
        raise PipediagError(_RUN_BY_COMMAND)
    if _under_way.end_if_over is not None:
        _under_way.end_if_over()
    if not _LOCK.acquire(blocking=False):
        raise PipediagError(_ANOTHER)
    _under_way.end_if_over = end_if_over


def when_turn_is_wanted(end_if_over: Callable[[], None]) -> None:
    """From here on have this called when another one wants the turn."""
    _under_way.end_if_over = end_if_over


def give_turn_back() -> None:
    """Nothing is measured any more."""
    _under_way.end_if_over = None
    _LOCK.release()
