"""Why a change can't be written into the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

_One = TypeVar("_One")


class NotPatchableError(Exception):
    """The source can't be changed safely; the message is one sentence for the user."""


class MadeInALoopError(NotPatchableError):
    """The call stands in a loop, which makes another pipeline or model each time."""


def only(found: Iterable[_One], otherwise: str) -> _One:
    """Return the one that was found.

    Raises:
        NotPatchableError: with that sentence, where it is not one.
    """
    several = list(found)
    if len(several) != 1:
        raise NotPatchableError(otherwise)
    return several[0]
