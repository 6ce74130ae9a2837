"""Steps of each thread: which hand-over begins one, and what belongs to the one that runs.

Evaluations and predictions within each step belong to it, as of a GAN's generator. So do batches of
iterators that a loop draws from beside its own, as of `zip(one, other)` or `next(other)`: where
each step takes a batch of both, the one that hands over first leads. Between two epochs both
interrupt the steps. Steps that Python feeds have no iterator: one begins where the line that began
the last one calls again, and what other lines train in between is a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field

from pipediag.capture.callsites import CallSite
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.runtime import Runtime
from pipediag.capture.watching.updates import join_role
from pipediag.session.recorded_loops import RecordedNestedCall
from pipediag.session.timeline import Span

_CALLS_BESIDE_BATCHES = 200
"""Own choice: a step may train so often on one batch before it is known that its loop trains."""

_Place = tuple[str, int]


@dataclass(eq=False)
class FedSteps:
    """Steps of one thread that Python gives their batches, by the line at which they begin."""

    place: _Place | None = None
    since: set[_Place] = field(default_factory=set)
    """Other lines that have trained since the step began."""
    consumers: dict[_Place, Consumer] = field(default_factory=dict)
    beside: int = 0
    """Calls since a batch was handed over to the loop that may be behind them."""

    def begins(
        self,
        loops: LoopRegistry,
        find_site: Callable[[], CallSite | None],
        last: Consumer | None,
        runtime: Runtime,
        *,
        eager: bool,
    ) -> Consumer | None:
        """Return the consumer of the step that the call begins; None within another step.

        The first call alone tells of no loop: a model is built so, too. `last` handed over a batch
        last on this thread, and `find_site` takes a while.
        """
        if self._is_read(last) or (site := find_site()) is None:
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
            self.consumers[place] = loops.fed_consumer(site, runtime, eager=eager)
        return self.consumers[place]

    def _is_read(self, last: Consumer | None) -> bool:
        """Return True if the batch of the call comes from an iterator after all."""
        if last is None or last.hand_over == "fed" or last.iterator() is None:
            return False
        self.beside += 1
        return last.loop.trains or self.beside < _CALLS_BESIDE_BATCHES


_MOST_PLACES = 16
"""Own choice: a step of more different calls is not distinguished any further."""


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
        """Leave the loop, whose steps or epoch are over: what is called next is in no step."""
        if loop is self.outer:
            self._leave()

    def took(self, span: Span, ended_ns: int) -> None:
        """Record what a call took that was a part of a step."""
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
"""Own choice: in a step that draws from more iterators, none is seen as a step of its own."""


_JOINED = (
    "Each step draws from several iterators, and trials would use up the others' batches, so "
    "nothing was tried in the running loop."
)


class JoinedIterators:
    """Iterators of one thread's steps, known once they have handed over twice in turn."""

    def __init__(self, loops: LoopRegistry, instruments: Instruments) -> None:
        self._loops = loops
        self._with = instruments
        self.lead: Consumer | None = None
        """The iterator whose hand-over begins a step."""
        self._led_ns = 0
        self._since: list[Consumer] = []
        """What has handed over since then, in order."""
        self._before: list[Consumer] = []
        """What had in the step before, or in the last one of the epoch before."""
        self._known: dict[str, list[Consumer]] = {}
        """What is joined, by the id of the loop that leads."""
        self._waited_ns: int | None = 0

    def joins(self, consumer: Consumer, now_ns: int, wait_ns: int | None) -> bool:
        """Return True if its batch is for the step that `lead` has begun."""
        lead = self.lead
        if not self._is_for_step_of(lead, consumer, now_ns):
            return False
        assert lead is not None
        known_wait = wait_ns is not None and self._waited_ns is not None
        self._waited_ns = (self._waited_ns or 0) + (wait_ns or 0) if known_wait else None
        if lead.loop.joins(consumer):
            self._join(lead.loop, consumer)
        if consumer.batches == lead.batches == 1:
            self._begins_later(lead, now_ns, wait_ns)
        else:
            consumer.waited_in_all_ns += wait_ns or 0
        return True

    def waited_for_all(self, lead: Consumer, wait_ns: int | None, continuous: bool) -> int | None:
        """Return what the last step has waited for batches of all its iterators; None where that
        is not known, as a function asked for one."""
        joined_ns, self._waited_ns = self._waited_ns, 0
        if wait_ns is None or joined_ns is None:
            return None
        if continuous:
            lead.waited_in_all_ns += wait_ns
        return wait_ns + joined_ns

    def _is_for_step_of(self, lead: Consumer | None, consumer: Consumer, now_ns: int) -> bool:
        loop = consumer.loop
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
        return True

    def _join(self, loop: Loop, consumer: Consumer) -> None:
        """Join an iterator to the loop's steps."""
        record = loop.record
        record.untried = _JOINED
        if consumer.loop is loop:
            record.steps -= (consumer.batches - 1) * record.batches_per_call
        else:
            join_role(loop, consumer.loop)
        self._with.recorder.attempt(
            "describing a second pipeline", self._loops.describe_joined, consumer
        )

    def _begins_later(self, lead: Consumer, now_ns: int, wait_ns: int | None) -> None:
        """Begin an epoch's steps with the first batch that the last of its iterators hands over."""
        loop, asked_ns = lead.loop, now_ns - (wait_ns or 0)
        self._waited_ns = 0
        self._with.timeline.steps_ended(asked_ns)
        self._with.timeline.steps_begin(loop.record.id, now_ns, wait_ns)
        loop.clock.began_later(now_ns)
        loop.last_ns = now_ns
        if loop.diagnosis is not None:
            loop.diagnosis.boundary(lead, now_ns, wait_ns, continuous=False)

    def part_of_step(self, consumer: Consumer) -> bool:
        """Return True if it is joined to the loop that leads."""
        if self.lead is None or consumer is self.lead:
            return False
        known = self._known.get(self.lead.loop.record.id, [])
        return any(one.loop is consumer.loop for one in known)

    def ended(self, consumer: Consumer) -> None:
        """Note that the iterator has no more batches."""
        if self.lead is not None and consumer.loop is self.lead.loop:
            self.let_go()

    def let_go(self) -> None:
        """Let nothing lead; what is joined is still known."""
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


class ThreadState:
    """The iterator that one thread consumes, and the step that it is in."""

    def __init__(self, loops: LoopRegistry, instruments: Instruments) -> None:
        self.last: Consumer | None = None
        """The iterator that handed over a batch last."""
        self.interrupted = False
        """True if the step that it began has been interrupted: the one place that knows."""
        self.epoch_ns: int | None = None
        """Time at which Keras last turned to the batches of an epoch."""
        self.nested = NestedCalls()
        self.fed = FedSteps()
        self.joined = JoinedIterators(loops, instruments)
