"""Why a change can't be written into the source."""

from __future__ import annotations


class NotPatchableError(Exception):
    """The source can't be changed safely; the message is one sentence for the user."""


class MadeInALoopError(NotPatchableError):
    """The call stands in a loop, which makes another pipeline or model each time."""
