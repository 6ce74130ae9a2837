"""Looks out for a first training loop, and says what is waited for where none comes."""

from __future__ import annotations

import time
from collections.abc import Callable

from pipediag.session.messages import FromChild, LoopFound, Started, Stopping

TELL_AFTER_S = 30.0
"""Own choice: as long as a person watches a run without a word and does not wonder."""


class Lookout:
    """Asked again and again whether to say something, which happens once at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: float | None = None

    def heard(self, message: FromChild) -> None:
        """Take note of what the child tells."""
        if isinstance(message, Started):
            self._since = self._clock()
        elif isinstance(message, LoopFound | Stopping):
            self._since = None

    def has_to_be_told(self) -> bool:
        """Whether, once, the user should hear what is waited for."""
        if self._since is None or self._clock() - self._since < TELL_AFTER_S:
            return False
        self._since = None
        return True
