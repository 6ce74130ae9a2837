"""What hands out batches in an iterator's place: one batch for ever, or a variant of the pipeline.

Everybody who puts something in the place of a script's iterator does it here, so that one place
knows what is there, and that the script gets its own back.
"""

from __future__ import annotations

from enum import Enum
from typing import Any


class Stage(Enum):
    """Compared with `is`: to hash an Enum runs Python code, at each step."""

    OWN = "own"
    """The script's own iterator hands out."""
    CATCHING = "catching"
    """It still does, and the batch that comes next is the one to be repeated."""
    LOOKING = "looking"
    """It still does, and the batch that comes next is looked at on its way."""
    REPEATED = "repeated"
    """That batch is handed out again and again."""
    ARM = "arm"
    """An arm of a trial hands out."""


class StandIn:
    """In an iterator's place. Hooks read `stage` and `iterator` on every step."""

    __slots__ = ("iterator", "stage")

    def __init__(self) -> None:
        self.stage = Stage.OWN
        self.iterator: Any = None
        """What stands in; None where the script's own iterator hands out."""

    def catch(self) -> None:
        """Let the script's own iterator hand out one more batch, to be repeated."""
        self.stage, self.iterator = Stage.CATCHING, None

    def look(self) -> None:
        """Let the script's own iterator hand out one more batch, which is looked at."""
        self.stage, self.iterator = Stage.LOOKING, None

    def caught(self, iterator: Any) -> None:
        """It was handed out, and `iterator` repeats it; None where it can't be repeated."""
        self.stage = Stage.OWN if iterator is None else Stage.REPEATED
        self.iterator = iterator

    def lend(self, iterator: Any) -> None:
        """Let an arm's iterator hand out from now on."""
        self.stage, self.iterator = Stage.ARM, iterator

    def give_back(self) -> None:
        """Let the script's own iterator hand out from now on."""
        self.stage, self.iterator = Stage.OWN, None

    def asked(self, own: Any) -> Any:
        """The iterator to ask for a batch where the script asks its `own`."""
        return own if self.iterator is None else self.iterator
