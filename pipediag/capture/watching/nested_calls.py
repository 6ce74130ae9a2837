"""Evaluations and predictions within each step of a loop, as of a GAN's generator.

Between two epochs they interrupt the steps; where one comes in each step, it is a part of it.
"""

from __future__ import annotations

from collections.abc import Set

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.session.recorded_loops import RecordedNestedCall
from pipediag.session.timeline import Span

_MOST_PLACES = 16
"""Own choice: a step of more different calls is not told apart any further."""


class NestedCalls:
    """Of one thread."""

    def __init__(self) -> None:
        self.outer: Loop | None = None
        """The loop whose step is running; None between two epochs."""
        self._inside: set[str] = set()
        """Loops of calls that the step which is running has made."""
        self._steady: Set[str] = frozenset()
        """Those that the step before has made."""
        self._steady_of: dict[str, Set[str]] = {}
        """Those of the last step before a loop was left."""
        self.runs = False
        """Whether a call runs that is a part of a step."""

    def belongs_to_step(self, consumer: Consumer) -> bool:
        """Whether a batch for an evaluation or a prediction is drawn within a step that makes one
        each time."""
        outer, called = self.outer, consumer.loop.record.id
        self.runs = False
        if outer is not None:
            self._inside.add(called)
            self.runs = called in self._steady and (outer.trains or outer.record.from_python)
        return self.runs

    def step_begins(self, loop: Loop) -> bool:
        """Of a loop that does not evaluate or predict by Keras; returns whether the step before,
        which lasted until now, has made such calls."""
        if loop is not self.outer:
            self._leave()
            self.outer, self._steady = loop, self._steady_of.get(loop.record.id, frozenset())
            return False
        if not (self._inside or self._steady):
            return False
        self._steady, self._inside = self._inside, set()
        return bool(self._steady)

    def ended(self, loop: Loop) -> None:
        """The steps of the loop are over, or an epoch of them: what is called next is in none."""
        if loop is self.outer:
            self._leave()

    def took(self, span: Span, ended_ns: int) -> None:
        """A call has ended: what it took is kept where it was a part of a step."""
        runs, self.runs = self.runs, False
        if self.outer is None or not runs:
            return
        nested = self.outer.record.nested
        place = (span.name, span.file, span.line)
        known = next((one for one in nested if (one.what, one.file, one.line) == place), None)
        if known is None:
            if len(nested) == _MOST_PLACES:
                return
            known = RecordedNestedCall(*place)
            nested.append(known)
        known.count += 1
        known.elapsed_ns += ended_ns - span.start_ns

    def _leave(self) -> None:
        outer, self.outer = self.outer, None
        if outer is not None:
            self._steady_of[outer.record.id], self._inside = self._inside, set()
