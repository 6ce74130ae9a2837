"""Why a change can't be written into the source.

Whatever in this package looks for a form of code raises NotPatchableError where it finds another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_One = TypeVar("_One")


class NotPatchableError(Exception):
    """The source can't be changed safely; the message is one sentence for the user."""


class MadeInALoopError(NotPatchableError):
    """The call stands in a loop, which makes another pipeline or model each time."""


def only(found: Iterable[_One], otherwise: str) -> _One:
    """Return the one that was found."""
    several = list(found)
    if len(several) != 1:
        raise NotPatchableError(otherwise)
    return several[0]
