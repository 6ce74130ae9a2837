"""A few batches are looked at on their way to the step, between two windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.stand_in import StandIn
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.measuring.table_watch import TableWatch


class Looking:
    """Of one loop. No step is timed while it lasts, and what it takes is set aside."""

    def __init__(self, loop: Loop, instruments: Instruments) -> None:
        self._loop = loop
        self._with = instruments
        self._tables = TableWatch(loop, instruments.recorder)
        self._began_ns = 0
        self._read = False
        self._taken: StandIn | None = None
        """Where the next batch is the one to be looked at."""

    @property
    def listens(self) -> bool:
        """Whether it takes time where a step ends."""
        return self._tables.listens

    def begin(self, consumer: Consumer) -> bool:
        """Returns whether there is anything to look for."""
        self._read = True
        self._tables.begin(consumer)
        if not self._tables.wants_batches:
            self.end()
            return False
        self._began_ns = time.monotonic_ns()
        self.at_next(consumer)
        return True

    def at_next(self, consumer: Consumer) -> None:
        """The batch that comes next is looked at."""
        self._give_back()
        self._taken = consumer.stand_in
        self._taken.look()
        self._tables.step_begins()

    def interrupted(self) -> None:
        """What follows is no step until one begins again."""
        self._tables.step_left()

    def goes_on(self, consumer: Consumer, now_ns: int, remaining: int | None) -> bool:
        """A step is over; returns whether another batch is to be looked at."""
        self._tables.step_ended()
        elapsed = now_ns - self._began_ns
        enough = self._with.pace.looked_enough(self._tables.seen, elapsed, remaining)
        if enough or not self._tables.wants_batches:
            self.end()
            return False
        self.at_next(consumer)
        return True

    def batches_drawn(self, batches: Sequence[Any]) -> None:
        """The step, or the steps of one call, are about to draw these."""
        self._aside(lambda: self._tables.handed_over(batches))

    def function_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function is called in a step, maybe with its batch."""
        self._aside(lambda: self._tables.called(function, args, kwargs))

    def end(self) -> None:
        """Write down what was seen; of a loop that ended before, what its step tells by itself."""
        self._give_back()
        if not self._read:
            self._read = True
            self._tables.begin(None)
        self._tables.end()

    def _give_back(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.give_back()

    def _aside(self, work: Callable[[], None]) -> None:
        """Do what the script would not have spent time on, in the middle of a step."""
        began_ns = time.monotonic_ns()
        work()
        ended_ns = time.monotonic_ns()
        self._loop.clock.set_aside(ended_ns - began_ns)
        self._with.timeline.passed("aside", began_ns, ended_ns)
