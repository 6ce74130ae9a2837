"""Steps of each thread: what belongs to the one that runs, and steps that are only noted.

Evaluations and predictions within each step belong to it, and batches of other iterators that a
loop draws from, as of `zip(one, other)`: the one that hands over first leads. Steps that Python
feeds begin where the line that began the last one calls again.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.session.recorded_loops import NestedCall
from pipediag.session.timeline import Span

_CALLS_BESIDE_BATCHES = 200
"""Calls on one batch after which the loop of that batch is not taken to feed them. Own choice: a
step may train so often on one batch before its loop is known to train."""

_Place = tuple[str, int]


@dataclass(eq=False)
class FedSteps:
    """Steps of one thread that Python gives their batches, by the line at which they begin."""

    place: _Place | None = None
    since: set[_Place] = field(default_factory=set)
    """Other lines that have trained since the step began."""
    consumers: dict[_Place, Consumer] = field(default_factory=dict)
    beside: int = 0
    """Number of calls since the loop that they may belong to was handed a batch."""

    def begins(self, loops: LoopRegistry, last: Consumer | None, *, eager: bool) -> Consumer | None:
        """Return the consumer of the step that the call begins; None within another step.

        The first call alone shows no loop, as building a model makes such a call, too. `last` is
        the consumer that handed over a batch last on this thread.
        """
        if self._is_read(last) or (site := call_site()) is None:  # in this order: it takes a while
            return None
        place = (site.file, site.line)
        if place != self.place:
            if self.place is None or place in self.since:
                self.place = place
                self.since.clear()
            else:
                self.since.add(place)
            return self.consumers.get(place) if place == self.place else None
        self.since.clear()
        if place not in self.consumers:
            self.consumers[place] = loops.fed_consumer(site, eager=eager)
        return self.consumers[place]

    def _is_read(self, last: Consumer | None) -> bool:
        """Return True if the batch of the call comes from an iterator after all."""
        if last is None or last.hand_over == "fed" or last.iterator() is None:
            return False
        self.beside += 1
        return last.loop.trains or self.beside < _CALLS_BESIDE_BATCHES


_MOST_JOINED = 8
"""Most iterators that are joined in one step; a further one begins a step itself. Own choice."""


class StepParts:
    """The step that a thread is in: the iterator that began it, and what belongs to it.

    An iterator is known to be joined once it has handed over twice in turn, and a loop to be called
    in each step once the step before has called it.
    """

    def __init__(self) -> None:
        self.last: Consumer | None = None
        """The iterator that handed over a batch last and is no part of another one's step."""
        self.fed = FedSteps()
        self.lead: Consumer | None = None
        """The iterator whose hand-over begins a step, where others are joined to it."""
        self._since: list[Consumer] = []
        """Iterators that have handed over since then, in order."""
        self._before: list[Consumer] = []
        """Iterators that did so in the step before, or in the last one of the epoch before."""
        self._known: dict[str, list[Consumer]] = {}
        """Iterators that are joined, by the id of the loop that leads."""
        self._waited_ns: int | None = 0
        self._outer: Loop | None = None
        """The loop whose step may call others; None between two epochs."""
        self._called: set[str] = set()
        """Loops that evaluate or predict, called in the step that is running."""
        self._called_before: Set[str] = frozenset()
        self._called_by: dict[str, Set[str]] = {}
        """Loops called in the last step before a loop was left, by the id of that loop."""
        self.in_call = False
        """True if a call runs that is a part of a step."""

    def calls(self, loop: Loop) -> bool:
        """Return True if a batch is for an evaluation or a prediction that each step makes."""
        outer = self._outer
        self.in_call = False
        if outer is not None:
            self._called.add(loop.record.id)
            known = loop.record.id in self._called_before
            self.in_call = known and (outer.trains or outer.record.from_python)
        return self.in_call

    def step_begins(self, loop: Loop) -> bool:
        """Begin a step of a loop that trains; True if the one before has evaluated or predicted."""
        if loop is not self._outer:
            self._leave_outer()
            self._outer = loop
            self._called_before = self._called_by.get(loop.record.id, frozenset())
            return False
        if not (self._called or self._called_before):
            return False
        self._called_before, self._called = self._called, set()
        return bool(self._called_before)

    def call_ended(self, span: Span) -> None:
        in_call, self.in_call = self.in_call, False
        if self._outer is None or not in_call:
            return
        nested = self._outer.record.nested
        place = (span.name, span.file, span.line)
        known = next((one for one in nested if (one.what, one.file, one.line) == place), None)
        if known is None:
            known = NestedCall(*place)
            nested.append(known)
        known.count += 1
        known.elapsed_ns += time.monotonic_ns() - span.start_ns

    def joins(self, consumer: Consumer) -> bool:
        """Return True if an iterator's batch is for the step that `lead` has begun."""
        lead, loop = self.lead, consumer.loop
        if consumer is lead:
            if self._since or self._before:
                known = self._joined_to(loop)
                self._before = self._since if len(self._since) >= len(known) else known
                self._since = []
            return False
        if lead is None or lead.iterator() is None or self._begins_anew(consumer, lead):
            self._let_lead(consumer)
            return False
        position = len(self._since)
        self._since.append(consumer)
        if position >= len(self._before) or self._before[position].loop is not loop:
            return False
        known = self._joined_to(lead.loop)
        if position >= len(known) or known[position].loop is not loop:
            self._known[lead.loop.record.id] = self._before[: position + 1]
        return True

    def wait_for_joined(self, wait_ns: int | None) -> None:
        known = wait_ns is not None and self._waited_ns is not None
        self._waited_ns = (self._waited_ns or 0) + (wait_ns or 0) if known else None

    def waited_for_all(self, wait_ns: int | None) -> int | None:
        """Return what the last step has waited for all its iterators; None if that is unknown."""
        joined_ns, self._waited_ns = self._waited_ns, 0
        if wait_ns is None or joined_ns is None:
            return None
        return wait_ns + joined_ns

    def is_joined(self, consumer: Consumer) -> bool:
        if self.lead is None or consumer is self.lead:
            return False
        return any(one.loop is consumer.loop for one in self._joined_to(self.lead.loop))

    def ended(self, loop: Loop) -> None:
        if self.lead is not None and loop is self.lead.loop:
            self.no_lead()

    def calls_nothing_more(self, loop: Loop) -> None:
        """Note that what is called next is in no step of the loop."""
        if loop is self._outer:
            self._leave_outer()

    def no_lead(self) -> None:
        """Remove the lead; the joined iterators are still known."""
        self.lead, self._since, self._before, self._waited_ns = None, [], [], 0

    def _leave_outer(self) -> None:
        outer, self._outer = self._outer, None
        if outer is not None:
            self._called_by[outer.record.id], self._called = self._called, set()

    def _joined_to(self, loop: Loop) -> list[Consumer]:
        return self._known.get(loop.record.id, [])

    def _let_lead(self, consumer: Consumer) -> None:
        self.lead = consumer
        self._since, self._waited_ns = [], 0
        self._before = self._joined_to(consumer.loop)

    def _begins_anew(self, consumer: Consumer, lead: Consumer) -> bool:
        """Return True if its steps are its own: of a new epoch, a `fit`, a loop that goes on."""
        loop = consumer.loop
        led_before = loop is not lead.loop and loop.record.id in self._known
        goes_on = len(self._since) == _MOST_JOINED or any(one is consumer for one in self._since)
        return led_before or goes_on or loop.fit_begun


@dataclass(slots=True, eq=False)
class Streak:
    """Steps between two decisions of a diagnosis, of which only the beginning is noted.

    The data that a hook needs at each step are cold in the processor's caches, which takes three
    percent of steps of 2 ms (benchmarks/hook_cost.py). So short steps of one thread, on one of its
    iterators, are reported together when one comes that decides something.
    """

    _tell: Callable[[Consumer, int, int | None], None]
    """Takes the iterator, the time at which the step began, and the wait for its batch in
    Python."""
    called_ns: int = 0
    """Time of the last call of the function."""
    _consumer: Consumer | None = None
    _left: int = 0
    _thread: int = 0
    _noted: list[tuple[int, int | None]] = field(default_factory=list)
    _function: weakref.ref[Any] | None = None
    _functions: list[Any] = field(default_factory=list)
    _traced: int = 0

    def begins(self, consumer: Consumer, steps: int) -> None:
        """Note the next steps without a report, as they decide nothing; another thread reports
        first."""
        if self._noted and get_ident() != self._thread:
            return
        if consumer is not self._consumer:
            self._function, self._noted = None, []
        self._consumer, self._left, self._thread = consumer, steps, get_ident()

    def follows(self, function: Any, traced: int, functions: list[Any]) -> None:
        """Expect this function in the next steps, traced so often by now, among `functions`."""
        if self._left > 0 and get_ident() == self._thread:
            self._function = weakref.ref(function)
            self._functions, self._traced = functions, traced

    def handed(self, consumer: Consumer, asked_ns: int, handed_ns: int) -> bool:
        """Note a batch that Python got; return False if it has to be reported at once."""
        if self._left <= 0 or consumer is not self._consumer or get_ident() != self._thread:
            return False
        self._left -= 1
        self._noted.append((handed_ns, handed_ns - asked_ns))
        return True

    def called(self, function: Any, args: tuple[Any, ...]) -> bool:
        """Note a call of the step's function; return False if it must be reported at once."""
        if self._left <= 0 or self._function is None or self._function() is not function:
            return False
        if get_ident() != self._thread or self._functions:
            return False
        consumer = self._consumer
        assert consumer is not None
        self.called_ns = time.monotonic_ns()
        if consumer.hand_over == "call":
            if not args or consumer.iterator() is not args[0]:
                return False
            self._left -= 1
            self._noted.append((self.called_ns, None))
        self._functions.append(function)
        return True

    def returned(self, function: Any) -> bool:
        """Note that the call is over; return True if the function was traced anew in it."""
        self._functions.pop()
        return bool(function.experimental_get_tracing_count() != self._traced)

    def settle(self) -> None:
        """Report what was noted, before anything else is reported on that thread."""
        if self._consumer is None or get_ident() != self._thread:
            return
        noted, self._noted, self._left = self._noted, [], 0
        for began_ns, wait_ns in noted:
            self._tell(self._consumer, began_ns, wait_ns)

    def let_go(self) -> None:
        self._noted, self._left = [], 0
        self._consumer = self._function = None
