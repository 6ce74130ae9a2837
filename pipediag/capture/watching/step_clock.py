"""Every hand-over of a batch: what is a step of which loop, which train, and what came between.

The StepClock alone decides if a step follows the last one of its loop without interruption.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipediag.capture.callsites import may_come_back, users_stack
from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Consumer, Interruption, Loop, Stage
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring.embeddings import read_next
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.process import EachThread, let_pass, runs_tf_data
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.loop_choice import LoopChoice
from pipediag.capture.watching.step_parts import StepParts, Streak
from pipediag.capture.watching.updates import (
    UpdateWatch,
    describe_start,
    join_role,
    learn_role,
    note_eager_step,
    settle_role,
)
from pipediag.session.timeline import Span

_JOINED = (
    "Each step draws from several iterators, and trials would use up the others' batches, so "
    "nothing was tried."
)


def _only_reads(loop: Loop) -> bool:
    """Return True for a loop of the script's own that has trained nothing in its first step."""
    record = loop.record
    return record.kind != "keras" and not loop.trains and record.first_step_ns is not None


_FIRST_STEPS = 10
"""Steps in which the functions of eager steps are noted: a GAN's generator may not be trained in
each. Own choice."""
_LOOK_EVERY_NS = 50_000_000
"""Own choice: a look took 10 microseconds, and the first, which reads a script of 1,500 lines, 9
milliseconds; an eager call of a model takes a millisecond and more."""
_FEW = 8
"""Most batches that one step draws from an iterator of its own. Own choice."""


def _left_ns(consumer: Consumer) -> int | None:
    """Return the time at which the script let go of an iterator, as by `break`, if its steps were
    over then: after `next(iter(dataset))` the step is still to come."""
    left_ns = consumer.left_ns if consumer.batches > _FEW else None
    return left_ns if left_ns is not None and left_ns >= consumer.loop.last_ns else None


class StepClock:
    """Receiver of the hooks' calls on the thread that consumes batches; each thread has its own
    steps."""

    def __init__(
        self,
        loops: LoopRegistry,
        updates: UpdateWatch,
        instruments: Instruments,
        leave: Callable[[], None] | None,
        held: Trials,
    ) -> None:
        self._loops = loops
        self._updates = updates
        self._with = instruments
        self._held = held
        self.streak = Streak(self._noted)
        self._threads = EachThread(StepParts, weakref.WeakSet())
        keep = loops.keep_evaluated
        self.choice = LoopChoice(updates, instruments, held, leave, keep)
        self._over = False
        self._looked_ns = 0
        """The time of the last look whether a loop was left."""

    @property
    def holds_epoch(self) -> bool:
        """Return True if the epoch that runs must not end, as trials need more steps of it."""
        active = self.choice.active
        if self._held.loop is None and (active is None or not active.repeats):
            return False  # as at nearly every step, by what is at hand
        last = self.last_here
        return last is not None and (self._held.loop is last.loop or self.choice.repeats(last.loop))

    # What the hooks report.

    def iterator_made(
        self, iterator: Any, dataset: Any, distributed: bool = False
    ) -> Consumer | None:
        """Register a Python-level iterator; return None if it is none of the script's own loops."""
        # tf.data's threads run generators, and what those read is part of the pipeline.
        if runs_tf_data():
            return None
        consumer = self._loops.consumer_for(iterator, dataset, distributed)
        if consumer is not None and consumer.loop is self._held.loop:
            # Its epoch passes under trials, whose steps are not counted.
            consumer.loop.record.iterators_in_trials += 1
        return consumer

    @property
    def last_here(self) -> Consumer | None:
        """The iterator that handed over a batch last on this thread."""
        return self._threads.here.last

    def handed_over(self, consumer: Consumer, asked_ns: int, handed_ns: int, batch: Any) -> Any:
        """Note that `next` got a batch for Python; return the one to hand over."""
        if self.streak.handed(consumer, asked_ns, handed_ns):
            return batch
        self.streak.settle()
        record = consumer.loop.record
        consumer.batches += 1
        consumer.waited_ns += handed_ns - asked_ns
        if record.fill_ns is None:
            record.fill_ns = handed_ns - asked_ns
        if record.batch_size is None:
            record.batch_size = consumer.loop.runtime.rows(batch)
        # Keras on JAX asks for `steps_per_execution` batches one by one, and runs them as one step.
        if (consumer.batches - 1) % record.batches_per_call == 0:
            waited_ns, consumer.waited_ns = consumer.waited_ns, 0
            self._boundary(consumer, handed_ns, waited_ns)
            if record.batches_per_call == 1:
                self._begin_streak(consumer)
        if consumer.stage is Stage.CATCHING:
            self._repeat(consumer, batch)
        return batch

    def call_begins(self, consumer: Consumer, iterator: Any, function: Any = None) -> Any:
        """Note that a tf.function is called with an iterator; return the one to call it with.

        Raises ScriptsOwnError where its data fail as a batch of them is read before.
        """
        self.streak.settle()
        consumer.hand_over = "call"
        if consumer.loop.record.kind == "eager":
            consumer.loop.record.kind = "tf_function"
        self._boundary(consumer, time.monotonic_ns(), None)
        self._begin_streak(consumer)
        consumer.batches += consumer.loop.record.batches_per_call
        if consumer.stage is Stage.CATCHING:
            for batch in consumer.draw(iterator):
                self._repeat(consumer, batch)
        elif consumer.stage is Stage.READING and consumer.loop.has_step(function):
            # Batches that other functions draw from it are not read.
            return read_next(consumer, iterator, self._with.recorder)
        return consumer.asked(iterator)

    def function_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note that a tf.function is called without an iterator, maybe with a batch."""
        active, last = self.choice.active, self.last_here
        if active is not None and last is not None and last.loop is active.loop:
            active.embeddings.function_called(function, args, kwargs)

    def fed_step(self, function: Any = None, arguments: Any = ()) -> None:
        """Begin a training step without an iterator: of a function that has its batch among the
        `arguments`, or of eager code."""
        thread = self._threads.here
        consumer = thread.fed.begins(self._loops, thread.last, eager=function is None)
        if consumer is None or self._over:
            return
        if function is not None:
            consumer.loop.runs(function)
        record = consumer.loop.record
        if arguments and record.batch_size is None:
            try:
                record.batch_size = consumer.loop.runtime.rows(arguments)
            except Exception as error:  # an object of the script's may answer with anything
                let_pass(error)
        self.streak.settle()
        if consumer.loop.interruption is not None or record.steps < _FIRST_STEPS:
            consumer.loop.fed_at = users_stack()
        # There is no wait: Python's work to get the batch is a part of the step.
        self._boundary(consumer, time.monotonic_ns(), 0)
        consumer.batches += 1

    def leave_fed_loop(self) -> None:
        """End the steps that Python fed, if the script has left the loops that held them: there is
        no iterator that says so."""
        thread, now_ns = self._threads.here, time.monotonic_ns()
        last = thread.last
        if last is None or last.hand_over != "fed" or last.loop.interruption is not None:
            return
        if not last.loop.trains or now_ns - self._looked_ns < _LOOK_EVERY_NS:
            return
        self._looked_ns = now_ns
        if may_come_back(last.loop.fed_at, users_stack()):
            return
        self.streak.settle()
        record = last.loop.record
        step_ns = record.elapsed_ns // max(1, record.steps)
        self._interrupt(thread, at_ns=min(now_ns, last.loop.last_ns + step_ns))
        thread.calls_nothing_more(last.loop)

    def eager_step(self) -> None:
        """Note that the script applies gradients outside of any compiled function."""
        self.fed_step()
        last = self._threads.here.last
        if last is not None and last.loop.record.steps <= _FIRST_STEPS:
            record = last.loop.record
            self._with.recorder.attempt("naming eager steps", note_eager_step, record)

    def interrupted_by_us(self, began_ns: int, ended_ns: int) -> None:
        """Note time of ours within the running step, whose duration then does not count."""
        last = self._threads.here.last
        if last is not None and last.loop.interruption is None:
            last.loop.interruption = Interruption()
        self._with.timeline.passed("aside", began_ns, ended_ns)

    def evaluated(self, span: Span) -> None:
        self._threads.here.call_ended(span)

    def exhausted(self, consumer: Consumer) -> None:
        self.streak.settle()
        record = consumer.loop.record
        if consumer.hand_over == "call":
            # The call was counted when it began, but found no batch.
            consumer.batches -= record.batches_per_call
            record.steps -= record.batches_per_call
        thread = self._threads.here
        lead = thread.lead if thread.is_joined(consumer) else None
        if lead is not None and lead.loop is consumer.loop:
            # As with `zip`: no step uses the batch that the lead has handed over.
            record.steps -= record.batches_per_call
        if record.epoch_steps is None:
            record.epoch_steps = record.steps
        if consumer is thread.last or (lead is not None and lead is thread.last):
            self._interrupt(thread, exhausted=consumer is thread.last)
            thread.calls_nothing_more(consumer.loop)
        thread.ended(consumer.loop)

    def epoch_ended(self, at_ns: int | None = None) -> None:
        """Note that Keras ended or began an epoch: what follows that moment, or now, is no step."""
        self.streak.settle()
        thread = self._threads.here
        if thread.in_call:  # then it is the end of a call within a step
            return
        last = thread.last
        if last is None or last.hand_over != "fed":  # where Python feeds the steps, Keras has none
            self._interrupt(thread, at_ns=at_ns)
            if last is not None:
                thread.calls_nothing_more(last.loop)
                thread.ended(last.loop)

    def epoch_over(self) -> None:
        """End an epoch of Keras's `fit`, and trials in the middle of it; may stop the script."""
        held = self._held_here
        if held is not None:
            self.choice.left(held)
            self.choice.go_on_or_stop(held)
        self.epoch_ended()

    def fit_over(self) -> None:
        """End a `fit` of this thread: the script gets its own model and callbacks back."""
        held = self._held_here
        if held is not None and held.fit_begun:
            self.choice.left(held)
        self._loops.let_go_of_fits()

    @property
    def _held_here(self) -> Loop | None:
        """Return the loop that this thread runs, if trials hold it."""
        last, held = self.last_here, self._held.loop
        return held if last is not None and last.loop is held else None

    def function_traced(self, function: Any, *, again: bool, lengths_differ: bool = False) -> None:
        """Note that a tf.function was traced, `again` or for the first time."""
        self.streak.settle()
        last = self._threads.here.last
        loop = last.loop if last is not None else None
        if loop is None or not self._updates.trains(function):
            return
        loop.record.trace_count += 1
        loop.traced()
        if self._held_here is None:  # an edit may make a function of what the script runs eagerly
            loop.runs(function)
        if again:
            loop.record.retrace_steps.append(loop.record.steps)
            loop.record.shapes_vary |= lengths_differ
        if loop.diagnosis is not None:
            loop.diagnosis.traced(again=again)
        self._held.traced(loop)

    def script_over(self, reason: str) -> None:
        self.streak.settle()
        self._over = True
        for thread in self._threads.all():
            self._interrupt(thread)
        self.choice.script_over(reason)
        for loop in self._loops.all():
            settle_role(loop, self._loops.all())

    def given_up(self) -> None:
        """End all measurements after an error of ours, and keep them."""
        self.streak.let_go()
        self.choice.script_over("pipediag stopped after an error of its own")
        self._with.recorder.save()
        self.choice.stop_the_disturbed()

    # What follows from it.

    def _begin_streak(self, consumer: Consumer) -> None:
        """Note the next steps without a report, where nothing depends on them."""
        if not consumer.loop.joined and (spare := self.choice.spare_steps(consumer.loop)) > 0:
            self.streak.begins(consumer, spare)

    def _noted(self, consumer: Consumer, began_ns: int, wait_ns: int | None) -> None:
        self._boundary(consumer, began_ns, wait_ns)
        consumer.batches += consumer.loop.record.batches_per_call

    def _boundary(self, consumer: Consumer, now_ns: int, wait_ns: int | None) -> None:
        """End a step, and begin the next one, unless the batch is for the one that runs."""
        thread, loop = self._threads.here, consumer.loop
        # A thread that goes on while another one leaves must not end the script once more.
        if self._over or self._is_part_of_step(thread, consumer, wait_ns):
            return
        self._learn_role(thread, goes_on=thread.last is consumer)
        if thread.last is not consumer:
            if thread.last is not None:
                self._interrupt(thread)
            loop.interruption = loop.interruption or Interruption()
            thread.last = consumer
        interruption, loop.interruption = loop.interruption, None
        continuous = interruption is None
        if self._held.loop is loop:
            if not self._held.boundary(consumer, now_ns, continuous):
                self.choice.released(loop, consumer)
            return
        record = loop.record
        if interruption is not None:
            self._tell_timeline(loop, now_ns, wait_ns, interruption)
        counts = not self.choice.repeats(loop)  # else it is ours, not the script's
        if counts and continuous:
            self._step_over(consumer, now_ns - loop.last_ns)
        loop.step_begins(now_ns, wait_ns, interruption, counts=counts)
        if record.first_step_ns is None:
            # The step that begins may be the first to be complete.
            self._updates.here.tracing_ns = 0
        if loop.joined:
            wait_ns = thread.waited_for_all(wait_ns)
        self.choice.step(consumer, now_ns, wait_ns, continuous)

    def _tell_timeline(
        self, loop: Loop, now_ns: int, wait_ns: int | None, interruption: Interruption
    ) -> None:
        timeline = self._with.timeline
        if interruption.by_trials:
            timeline.passed("aside", loop.last_ns, now_ns - (wait_ns or 0))
        # This does nothing if the steps that the trials interrupted go on.
        timeline.steps_begin(loop.record.id, now_ns, wait_ns, lines=_only_reads(loop))

    def _is_part_of_step(self, thread: StepParts, consumer: Consumer, wait_ns: int | None) -> bool:
        """Return True if the batch is for the running step, or for a prediction within it."""
        loop = consumer.loop
        if consumer.hand_over == "fed":
            thread.no_lead()
        else:
            thread.fed.beside = 0
        if loop.record.kind == "keras" and not loop.trains:
            part = thread.calls(loop)
        else:
            part = consumer.hand_over != "fed" and thread.joins(consumer)
            if part:
                self._join(thread, consumer, wait_ns)
            called = not part and thread.step_begins(loop)
            # Keras' `predict` writes nothing: the step that had called it has gone on.
            if called and thread.last is not consumer and self._updates.take_updated():
                learn_role(loop.record)
        if part and (thread.lead is None or loop is not thread.lead.loop):
            loop.record.steps += loop.record.batches_per_call
        return part

    def _join(self, thread: StepParts, consumer: Consumer, wait_ns: int | None) -> None:
        """Count the batch of another iterator among those of the step that `lead` has begun."""
        lead = thread.lead
        assert lead is not None
        loop, record = lead.loop, lead.loop.record
        if loop.joins(consumer):
            record.untried = _JOINED
            if consumer.loop is loop:
                record.steps -= (consumer.batches - 1) * record.batches_per_call
            else:
                join_role(loop, consumer.loop)
        thread.wait_for_joined(wait_ns)

    def _step_over(self, consumer: Consumer, duration_ns: int) -> None:
        loop, record = consumer.loop, consumer.loop.record
        record.elapsed_ns += duration_ns
        if record.steps <= 2 * record.batches_per_call:
            self._with.recorder.attempt(
                "describing how the loop starts up",
                lambda: describe_start(self._loops, self._updates, consumer, duration_ns),
            )
            self._with.timeline.lines_in_steps(_only_reads(loop))
        active = self.choice.active
        if active is not None and active.loop.thread is not loop.thread:
            other = active.loop
            # A step of the loop that is measured lies between two of this one.
            if loop.trains and record.beside is None and other.last_ns > loop.last_ns:
                other.record.beside, record.beside = record.id, other.record.id

    def _interrupt(
        self, thread: StepParts, *, exhausted: bool = False, at_ns: int | None = None
    ) -> None:
        """Note that the last step is followed by something other than a step."""
        self._learn_role(thread, goes_on=False)
        if self._held.loop is None or not self._held.loop.runs_elsewhere():
            self._with.state.show()
            self._updates.take_updated()  # what that wrote is ours, and no step's of what follows
        last = thread.last
        if last is None or last.loop.interruption is not None:
            return
        loop, now_ns = last.loop, at_ns or _left_ns(last) or time.monotonic_ns()
        loop.interruption = Interruption(now_ns)
        self._with.timeline.steps_ended(now_ns)
        if loop.diagnosis is not None:
            loop.diagnosis.interrupted(last, exhausted)

    def _learn_role(self, thread: StepParts, *, goes_on: bool) -> None:
        """Mark the loop of a step that wrote a trainable variable as a training loop.

        What is written after an interruption, such as weights that are loaded, belongs to no step.
        Neither does a write of a function that loops over data by itself, unless another step of
        the loop follows: it may be called after a preview.
        """
        looped = self._updates.here.looped
        if self._updates.take_updated() and thread.last is not None and (goes_on or not looped):
            loop = thread.last.loop
            if loop.interruption is None and not loop.record.updates_variables:
                learn_role(loop.record)
                self._with.timeline.lines_in_steps(False)

    def _repeat(self, consumer: Consumer, batch: Any) -> None:
        loop = consumer.loop
        if loop.record.batch_size is None:
            loop.record.batch_size = loop.runtime.rows(batch)
        try:
            repeated = loop.runtime.handing_out(batch, consumer.element_spec)
        except Exception as error:
            let_pass(error)
            repeated = None
            self._with.recorder.note(
                "The consumer could not be measured on a repeated batch: "
                f"{type(error).__name__}: {error}"
            )
        # None where it can't be repeated.
        consumer.hand_out(Stage.OWN if repeated is None else Stage.REPEATED, repeated)

    def try_pipelines_alone(self) -> None:
        self._loops.keep_evaluated()
        self._held.try_pipelines_alone(self._loops.all())

    def let_go(self) -> None:
        """Drop all that belongs to the script, so that it goes when its modules go."""
        self.choice.active = None
        self.streak.let_go()
        for thread in self._threads.all():
            thread.last = None
            thread.fed.consumers.clear()
        for loop in self._loops.all():
            loop.let_go()


Hook = Callable[[Any], None]
"""Hooks into a module that has just been imported."""


@dataclass(kw_only=True)
class Watchers(Instruments):
    """Receivers of the hooks' reports, with the guard around their calls."""

    guard: Guard
    steps: StepClock
    updates: UpdateWatch
    held: Trials
    plan: PlanRecorder
    came_late: bool = False
    """True if the program had datasets, iterators and functions before we came."""
