"""Evaluations and predictions within each step of a loop, as of a GAN's generator.

Between two epochs they interrupt the steps; where one comes in each step, it is a part of it.
"""

from __future__ import annotations

from pipediag.capture.loops.loop import Consumer
from pipediag.session.recorded_loops import RecordedNestedCall
from pipediag.session.timeline import Span

_MOST_PLACES = 16
"""Own choice: a step of more different calls is not told apart any further."""


class NestedCalls:
    """Of one thread."""

    def __init__(self) -> None:
        self._inside = False
        """Whether the step that is running had one."""
        self._steady = False
        """Whether the step before had one, too."""

    def belongs_to(self, last: Consumer | None, consumer: Consumer) -> bool:
        """Whether a batch for `consumer` is drawn within the step that `last` has begun."""
        if last is None or last.hand_over != "fed" or consumer.loop.record.kind != "keras":
            return False
        if consumer.loop.trains:
            return False
        self._inside = True
        return self._steady

    def step_begins(self) -> None:
        """Of a loop that Python feeds."""
        self._steady, self._inside = self._inside, False

    def took(self, last: Consumer | None, span: Span, ended_ns: int) -> None:
        """A call has ended: what it took is kept where it was a part of a step."""
        if last is None or last.hand_over != "fed" or not self._steady:
            return
        nested = last.loop.record.nested
        place = (span.name, span.file, span.line)
        known = next((one for one in nested if (one.what, one.file, one.line) == place), None)
        if known is None:
            if len(nested) == _MOST_PLACES:
                return
            known = RecordedNestedCall(*place)
            nested.append(known)
        known.count += 1
        known.elapsed_ns += ended_ns - span.start_ns
