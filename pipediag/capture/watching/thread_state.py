"""State of each thread of the script: its running step, and what is a part of that.

Evaluations and predictions within each step are, as of a GAN's generator; and so are batches of
iterators that a loop draws from beside its own, as of `zip(one, other)` or by `next(other)`: where
each step takes a batch of both, the one that hands over first leads. Between two epochs both
interrupt the steps.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.threads import EachThread
from pipediag.session.recorded_loops import RecordedNestedCall
from pipediag.session.timeline import Span

_MOST_PLACES = 16
"""Own choice: a step of more different calls is not told apart any further."""


class NestedCalls:
    """Evaluations and predictions within the steps of one thread."""

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
        """True if a call runs that is a part of a step."""

    def belongs_to_step(self, consumer: Consumer) -> bool:
        """Return True if the batch is for an evaluation or a prediction that each step makes."""
        outer, called = self.outer, consumer.loop.record.id
        self.runs = False
        if outer is not None:
            self._inside.add(called)
            self.runs = called in self._steady and (outer.trains or outer.record.from_python)
        return self.runs

    def step_begins(self, loop: Loop) -> bool:
        """Begin a step of a loop that trains; return True if the step before it, which ends now,
        has evaluated or predicted."""
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


_MOST_JOINED = 8
"""Own choice: in a step that draws from more iterators, none is told from the steps of another."""


class JoinedIterators:
    """Iterators of one thread's steps, known once they have handed over twice in turn."""

    def __init__(self) -> None:
        self.lead: Consumer | None = None
        """Whose hand-over begins a step."""
        self._led_ns = 0
        self._since: list[Consumer] = []
        """What has handed over since then, in order."""
        self._before: list[Consumer] = []
        """The same in the step before, or in the last one of the epoch before."""
        self._known: dict[str, list[Consumer]] = {}
        """What is joined, by the id of the loop that leads."""
        self._waited_ns: int | None = 0

    def joins(self, consumer: Consumer, now_ns: int, wait_ns: int | None) -> bool:
        """Return True if its batch is for the step that `lead` has begun."""
        lead, loop = self.lead, consumer.loop
        if consumer is lead:
            if self._since or self._before:
                known = self._known.get(loop.record.id, [])
                self._before = self._since if len(self._since) >= len(known) else known
                self._since = []
            return False
        if lead is None or lead.iterator() is None or self._begins_anew(consumer, lead):
            self._leads(consumer, now_ns)
            return False
        position = len(self._since)
        self._since.append(consumer)
        if position >= len(self._before) or self._before[position].loop is not loop:
            return False
        if self._had_a_batch_drawn_ahead(lead, consumer, position):
            self._known[loop.record.id] = [lead]
            self._leads(consumer, now_ns)
            return False
        known = self._known.get(lead.loop.record.id, [])
        if position >= len(known) or known[position].loop is not loop:
            self._known[lead.loop.record.id] = self._before[: position + 1]
        if wait_ns is None or self._waited_ns is None:
            self._waited_ns = None
        else:
            self._waited_ns += wait_ns
        return True

    def part_of_step(self, consumer: Consumer) -> bool:
        """Return True if it is joined to the loop that leads."""
        if self.lead is None or consumer is self.lead:
            return False
        known = self._known.get(self.lead.loop.record.id, [])
        return any(one.loop is consumer.loop for one in known)

    def take_waited(self) -> int | None:
        """Nanoseconds that the step which is over has waited for joined batches; None where one was
        asked for inside a function."""
        waited, self._waited_ns = self._waited_ns, 0
        return waited

    def ended(self, consumer: Consumer) -> None:
        """Note that the iterator has no more batches."""
        if self.lead is not None and consumer.loop is self.lead.loop:
            self.let_go()

    def let_go(self) -> None:
        """Nothing leads; what is joined is still known."""
        self.lead, self._since, self._before, self._waited_ns = None, [], [], 0

    def _leads(self, consumer: Consumer, now_ns: int) -> None:
        self.lead, self._led_ns = consumer, now_ns
        self._since, self._waited_ns = [], 0
        self._before = self._known.get(consumer.loop.record.id, [])

    def _begins_anew(self, consumer: Consumer, lead: Consumer) -> bool:
        """Return True if its steps are its own: of a new epoch, a `fit`, a loop that goes on."""
        loop = consumer.loop
        led_before = loop is not lead.loop and loop.record.id in self._known
        goes_on = len(self._since) == _MOST_JOINED or any(one is consumer for one in self._since)
        return led_before or goes_on or loop.fit_begun

    def _had_a_batch_drawn_ahead(self, lead: Consumer, consumer: Consumer, position: int) -> bool:
        """Return True if `lead` has handed over one before the loop began whose iterator this is.

        As of data that are looked at before, and drawn from within the loop afterwards.
        """
        return (
            lead.loop.record.id not in self._known
            and consumer is self._before[position]
            and consumer.loop is not lead.loop
            and consumer.made_ns > self._led_ns
        )


@dataclass(eq=False)
class ThreadState:
    """The iterator that one thread consumes, and the step that it is in."""

    last: Consumer | None = None
    """The iterator that handed over a batch last."""
    seam: bool = False
    """True if the step that it began has been interrupted."""
    epoch_ns: int | None = None
    """When Keras turned to the batches of an epoch last."""
    nested: NestedCalls = field(default_factory=NestedCalls)
    joined: JoinedIterators = field(default_factory=JoinedIterators)


ThreadStates = EachThread[ThreadState]
