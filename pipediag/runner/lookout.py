"""Looks out for what a run waits for, and says so where it does not come for long."""

from __future__ import annotations

import time
from collections.abc import Callable

from pipediag.runner.progress import LooksFurther, NoLoopYet, NotWarmYet
from pipediag.session.messages import (
    FromChild,
    LoopFound,
    LoopMeasured,
    Started,
    Stopping,
    TrialsAwaited,
    WindowBegun,
)

TELL_AFTER_S = 30.0
"""Own choice: as long as a person watches a run without a word and does not wonder."""

Awaited = NoLoopYet | NotWarmYet | LooksFurther


class Lookout:
    """Asked again and again what to say: of each thing that is waited for, once at most."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._awaited: Awaited | None = None
        self._since: float | None = None

    def heard(self, message: FromChild) -> None:
        """Take note of what the child tells."""
        match message:
            case Started():
                self._waits_for(NoLoopYet())
            case LoopFound(line):
                self._waits_for(NotWarmYet(line))
            case LoopMeasured(line):
                self._waits_for(LooksFurther(line))
            case WindowBegun() | Stopping():
                self._awaited = None
            case TrialsAwaited():
                self._since = None

    def trials_over(self) -> None:
        """The script goes on, if it was not stopped."""
        self._since = self._clock()

    def to_be_told(self) -> Awaited | None:
        """What the user should hear now, once, that it is waited for."""
        if self._since is None or self._clock() - self._since < TELL_AFTER_S:
            return None
        awaited, self._awaited = self._awaited, None
        return awaited

    def _waits_for(self, awaited: Awaited) -> None:
        self._awaited, self._since = awaited, self._clock()
