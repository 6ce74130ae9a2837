"""The one exception that users see, and the exit statuses of the command line."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Exit statuses, for shells and CI."""

    DONE = 0
    GATE_FAILED = 1
    USAGE = 2
    SCRIPT_FAILED = 3
    INCONCLUSIVE = 4


class PipediagError(Exception):
    """A problem to tell the user: what is wrong, what follows, what to do.

    Caught once, in the command line, which prints the message without a traceback and
    exits with `status`.
    """

    def __init__(self, message: str, status: ExitStatus = ExitStatus.USAGE) -> None:
        super().__init__(message)
        self.status = status


def add_note(error: BaseException, note: str) -> None:
    """Add a note for the user below the message; Python 3.10 has no method for it."""
    error.__notes__ = [*getattr(error, "__notes__", []), note]
