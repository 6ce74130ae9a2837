"""What the parent and a child whose loop is held say to each other."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Protocol

from pipediag.runner.progress import Event

ANSWER_EVENTS = ("prepared", "arm-refused", "block")
"""What the child says to a command."""


class ChildGone(Exception):  # noqa: N818 - no error of anybody's
    """The child does not answer any more; the message is a sentence that says why."""


class Ask(Protocol):
    """Puts a command to the child and waits for its answer, `limit_s` at most.

    Raises:
        ChildGone: there will be no answer. A child that hangs is ended.
    """

    def __call__(self, command: dict[str, Any], limit_s: float) -> Event: ...


OnTrials = Callable[[Event, Ask], None]


class CommandPipe:
    """The pipe to the child, whose end the child inherits."""

    def __init__(self) -> None:
        self.childs_end, self._writing = os.pipe()
        os.set_inheritable(self.childs_end, True)
        self._childs_end_open = True

    def close_childs_end(self) -> None:
        os.close(self.childs_end)
        self._childs_end_open = False

    def write(self, command: dict[str, Any]) -> None:
        os.write(self._writing, (json.dumps(command) + "\n").encode())

    def close(self) -> None:
        os.close(self._writing)
        if self._childs_end_open:
            self.close_childs_end()
