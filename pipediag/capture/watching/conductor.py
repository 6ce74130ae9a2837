"""Hears of every hand-over of a batch, tells which loop trains, and drives its diagnosis."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pipediag.capture.callsites import call_site
from pipediag.capture.environment import describe_environment
from pipediag.capture.guard import attempt, nothing
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.loops.stand_in import Stage
from pipediag.capture.measuring.diagnosis import Diagnosis
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.python_functions import source_location
from pipediag.capture.runtime import Runtime
from pipediag.capture.threads import EachThread, runs_tf_data
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.capture.watching import roles
from pipediag.capture.watching.evaluations import Evaluations
from pipediag.capture.watching.fed_steps import FedSteps
from pipediag.capture.watching.held_batch import HeldBatch
from pipediag.capture.watching.looking import look_at_next
from pipediag.capture.watching.nested_calls import NestedCalls
from pipediag.capture.watching.repeating import repeat, repeat_next
from pipediag.capture.watching.startup import EarlySteps
from pipediag.capture.watching.stopping import Stopping
from pipediag.capture.watching.streak import Streak
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound
from pipediag.session.settings import RunSettings
from pipediag.session.timeline import Span

_MOST_DIAGNOSED = 6
# A loop that has not come back for so long, while another trains, is over.
_ABANDONED_NS = 3_000_000_000


@dataclass(eq=False)
class _Turn:
    """What a thread of the script is consuming."""

    last: Consumer | None = None
    """The iterator that handed over a batch last."""
    seam: bool = False
    """Whether the step that it began has been interrupted."""
    nested: NestedCalls = field(default_factory=NestedCalls)


class Conductor:
    """The hooks call it on the thread that consumes batches; each thread has steps of its own."""

    def __init__(
        self,
        loops: LoopRegistry,
        updates: UpdateWatch,
        instruments: Instruments,
        settings: RunSettings,
        leave: Callable[[], None],
        held: HeldLoops,
    ) -> None:
        self._loops = loops
        self._updates = updates
        self._with = instruments
        self._early_steps = EarlySteps(loops, updates)
        self._stopping = Stopping(instruments, settings, leave, loops.keep_evaluated)
        self._held = held
        self._holds_only = settings.hold_loop is not None
        self._wanted_line = settings.loop if isinstance(settings.loop, int) else None
        self._held_batch = HeldBatch()
        self.streak = Streak(self._noted)
        self._evaluations = Evaluations(instruments)
        self._holding = False
        self._fed = FedSteps(loops)
        self._turns = EachThread(_Turn)
        self._consumed = False
        self._over = False
        self._active: Diagnosis | None = None
        self._diagnosed: list[Loop] = []
        self.before_training: Callable[[], None] = nothing
        """Called when a training loop has its first batch and has made no step with it."""
        self.when_measured: Callable[[], None] = nothing
        """Called between two steps of a training loop whose last window is over."""

    @property
    def kept_alive(self) -> list[Any]:
        """Iterators of the script that was stopped; the process ends without freeing them."""
        return self._stopping.kept_alive

    @property
    def in_a_loop(self) -> bool:
        """Whether any iterator has handed over a batch so far."""
        return self._consumed

    @property
    def holds_epoch(self) -> bool:
        """Whether the epoch that runs must not end, as trials need more steps of it."""
        active = self._active
        if self._held.loop is None and (active is None or not active.repeats):
            return False  # as at nearly every step, told by what is at hand
        last = self._turns.here.last
        if last is None:
            return False
        diagnosis = last.loop.diagnosis
        return self._held.loop is last.loop or (diagnosis is not None and diagnosis.repeats)

    # What the hooks report.

    def iterator_made(
        self, iterator: Any, dataset: Any, runtime: Runtime, distributed: bool = False
    ) -> Consumer | None:
        """A Python-level iterator was made; None where it is none of the script's own loops."""
        # tf.data's threads run generators, and what those read is part of the pipeline.
        if runs_tf_data():
            return None
        return self._loops.consumer_for(iterator, dataset, runtime, distributed)

    def handed_over(self, consumer: Consumer, asked_ns: int, handed_ns: int, batch: Any) -> Any:
        """`next` got a batch for Python; returns the one to hand over.

        That is another one where trials are over: the batch that they began at.
        """
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
            held = self._held.loop is consumer.loop
            self._boundary(consumer, handed_ns, waited_ns)
            if (self._held.loop is consumer.loop) != held:
                batch = self._held_batch.swapped(consumer.loop, batch)
            if record.batches_per_call == 1:
                self._begin_streak(consumer)
        if consumer.stand_in.stage is Stage.CATCHING:
            repeat(consumer, batch, self._with.recorder.note)
        return batch

    def call_begins(self, consumer: Consumer, iterator: Any, function: Any = None) -> Any:
        """A tf.function is called with an iterator; returns the iterator to call it with."""
        self.streak.settle()
        consumer.hand_over = "call"
        if consumer.loop.record.kind == "eager":
            consumer.loop.record.kind = "tf_function"
        self._boundary(consumer, time.monotonic_ns(), None)
        self._begin_streak(consumer)
        consumer.batches += consumer.loop.record.batches_per_call
        if consumer.stand_in.stage is Stage.CATCHING:
            repeat_next(consumer, iterator, self._with.recorder.note)
        elif consumer.stand_in.stage is Stage.LOOKING and consumer.loop.has_step(function):
            # What others draw from it nobody has read.
            return look_at_next(consumer, iterator)
        return consumer.stand_in.asked(iterator)

    @property
    def looks(self) -> bool:
        """Whether what functions are called with tells something."""
        return self._active is not None and self._active.looks

    def function_called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A tf.function is called without an iterator, maybe with a batch."""
        active, last = self._active, self._turns.here.last
        if active is not None and last is not None and last.loop is active.loop:
            active.looking.function_called(function, args, kwargs)

    def fed_step(self, runtime: Runtime, function: Any = None) -> None:
        """A training step begins that was given no iterator, by a function or eagerly by none."""
        last = self._turns.here.last
        consumer = self._fed.begins(call_site, last, runtime, eager=function is None)
        if consumer is None or self._over:
            return
        if function is not None:
            _runs(consumer.loop, function)
        self.streak.settle()
        self._turns.here.nested.step_begins()
        # Nothing is waited for: what Python does to get the batch is a part of the step.
        self._boundary(consumer, time.monotonic_ns(), 0)
        consumer.batches += 1

    def evaluated(self, span: Span) -> None:
        """A call of Keras that evaluates has ended."""
        turn = self._turns.here
        turn.nested.took(turn.last, span, time.monotonic_ns())

    def exhausted(self, consumer: Consumer) -> None:
        """The iterator has no more batches."""
        self.streak.settle()
        if consumer.hand_over == "call":
            # The call was counted when it began, and found nothing.
            consumer.batches -= consumer.loop.record.batches_per_call
            consumer.loop.record.steps -= consumer.loop.record.batches_per_call
        consumer.loop.data_ended()
        if consumer is self._turns.here.last:
            self._interrupt(self._turns.here, exhausted=True)

    def epoch_ended(self, at_ns: int | None = None) -> None:
        """Keras says that an epoch begins or ends: what follows that moment, or now, is no step."""
        self.streak.settle()
        last = self._turns.here.last
        if last is None or last.hand_over != "fed":  # where Python feeds the steps, Keras has none
            self._interrupt(self._turns.here, exhausted=False, at_ns=at_ns)

    def function_traced(self, function: Any, *, again: bool, lengths_differ: bool = False) -> None:
        """A tf.function was traced in a call; `again` where it had been before that call, and
        perhaps for batches of other lengths."""
        self.streak.settle()
        last = self._turns.here.last
        loop = last.loop if last is not None else None
        if loop is None or not self._updates.trains(function):
            return
        loop.record.trace_count += 1
        loop.clock.traced()
        _runs(loop, function)
        if again:
            loop.record.retrace_steps.append(loop.record.steps)
            loop.record.shapes_vary |= lengths_differ
        if loop.diagnosis is not None:
            loop.diagnosis.traced(again=again)
        self._held.traced(loop)

    def script_over(self, reason: str) -> None:
        """The script's code has ended or is being stopped."""
        self.streak.settle()
        self._over = True
        for turn in self._turns.all():
            self._interrupt(turn, exhausted=False)
        if self._active is not None:
            self._active.finish(reason)
        self._held.stop(reason)
        self._with.state.give_back()
        for loop in self._loops.all():
            roles.settle(loop, self._loops.all())

    def given_up(self) -> None:
        """An error of ours: what was measured is kept, and nothing more is measured.

        Raises:
            StopScript: a repeated batch has trained the model wrongly, so the script can't go on.
        """
        note = self._with.recorder.note
        reason = "pipediag stopped after an error of its own"
        active, self._active = self._active, None
        self.streak.let_go()
        if active is not None:
            attempt(note, "closing a window", active.finish, reason)
        attempt(note, "ending trials", self._held.stop, reason)
        attempt(note, "putting the training back", self._with.state.give_back)
        self._with.recorder.save()
        self._stopping.stop_the_disturbed()

    def kept(self, consumer: Consumer, asked_ns: int, handed_ns: int, batch: Any) -> Any:  # noqa: ARG002
        """The batch to hand over where `handed_over` failed: that at which trials began, if any."""
        return self._held_batch.or_else(consumer.loop, batch)

    # What follows from it.

    def _interrupt(self, turn: _Turn, exhausted: bool, at_ns: int | None = None) -> None:
        self._learn_role(turn)
        self._with.state.show()
        if turn.last is not None and not turn.seam:
            found_nothing = exhausted and turn.last.hand_over == "call"
            loop = turn.last.loop
            now_ns = at_ns or time.monotonic_ns()
            loop.clock.interrupted(now_ns, ended_a_step=not found_nothing)
            self._with.timeline.steps_ended(now_ns)
            if loop.diagnosis is not None:
                loop.diagnosis.seam(turn.last, exhausted)
        turn.seam = True

    def _begin_streak(self, consumer: Consumer) -> None:
        """Have the next steps noted alone where nothing can come of them."""
        active = self._active
        spare = (
            active.spare_steps if active is not None and active is consumer.loop.diagnosis else 0
        )
        if spare > 0:
            self.streak.begins(consumer, spare)

    def _noted(self, consumer: Consumer, began_ns: int, wait_ns: int | None) -> None:
        """A step of a streak."""
        self._boundary(consumer, began_ns, wait_ns)
        consumer.batches += consumer.loop.record.batches_per_call

    def _boundary(self, consumer: Consumer, now_ns: int, wait_ns: int | None) -> None:
        # A thread that goes on while another one leaves must not end the script once more.
        if self._over or self._is_nested(consumer):
            return
        loop = consumer.loop
        record = loop.record
        turn = self._turns.here
        self._learn_role(turn)
        if turn.last is not consumer:
            self._turn_to(turn, consumer)
        continuous, turn.seam = not turn.seam, False
        held, self._holding = self._holding, self._held.loop is loop
        if self._holding:
            if not self._held.boundary(consumer, now_ns, continuous):
                self._released(loop)
            return
        continuous = continuous and not held  # trials may have been given up in mid-step
        if held:
            self._with.timeline.passed("aside", loop.last_ns, now_ns - (wait_ns or 0))
        if not continuous:  # and where the steps that the trials came in go on, this does nothing
            self._with.timeline.steps_begin(record.id, now_ns, wait_ns)
        if not self._repeats(loop):
            self._count(consumer, now_ns, continuous)
        loop.last_ns = now_ns
        loop.clock.hand_over(now_ns, wait_ns, continuous)
        if record.first_step_ns is None:
            self._updates.tracing_ns = 0  # the step that begins may be the first to be complete
        self._diagnose(consumer, now_ns, wait_ns, continuous)
        deadline_ns = self._stopping.deadline_ns
        if deadline_ns is not None and now_ns > deadline_ns and self._active is None:
            self.stop()

    def _is_nested(self, consumer: Consumer) -> bool:
        """Whether the batch is for a prediction that is a part of the step that is running."""
        if consumer.hand_over == "fed":
            return False
        turn = self._turns.here
        self._fed.batch_handed_over()
        nested = turn.nested.belongs_to(turn.last, consumer)
        if nested:
            consumer.loop.record.steps += consumer.loop.record.batches_per_call
        return nested

    def _repeats(self, loop: Loop) -> bool:
        """Whether the loop was handed a batch again: a step that is ours, not the script's."""
        active = self._active
        return active is not None and active.loop is loop and bool(active.repeats)

    def _count(self, consumer: Consumer, now_ns: int, continuous: bool) -> None:
        """A step of the script's begins, and one is over where nothing came between."""
        if continuous:
            self._step_over(consumer, now_ns - consumer.loop.last_ns)
        consumer.loop.record.steps += consumer.loop.record.batches_per_call

    def _step_over(self, consumer: Consumer, duration_ns: int) -> None:
        loop, record = consumer.loop, consumer.loop.record
        record.elapsed_ns += duration_ns
        if record.steps <= 2 * record.batches_per_call:
            attempt(
                self._with.recorder.note,
                "describing how the loop starts up",
                self._early_steps.describe,
                consumer,
                duration_ns,
            )
        active = self._active
        if active is not None and active.loop.thread is not loop.thread:
            roles.notice_beside(active.loop, loop)

    def _turn_to(self, turn: _Turn, consumer: Consumer) -> None:
        if turn.last is not None:
            self._interrupt(turn, exhausted=False)
        turn.seam = True
        turn.last = consumer
        self._consumed = True

    def _diagnose(
        self, consumer: Consumer, now_ns: int, wait_ns: int | None, continuous: bool
    ) -> None:
        """Measure the loop, or begin to if it trains and none is being measured."""
        loop = consumer.loop
        if self._holds_only:
            self._hold_as_soon_as_it_runs(consumer, continuous)
        elif loop.diagnosis is not None:
            self._measure(loop.diagnosis, consumer, now_ns, wait_ns, continuous)
            if loop.diagnosis is self._active and not self._active.measuring:
                self._measured(loop, consumer)
        elif not loop.trains:
            self._evaluations.step(consumer, now_ns)
        elif len(self._diagnosed) < _MOST_DIAGNOSED and self._is_wanted(loop):
            self._give_up_the_abandoned(loop, now_ns)
            if self._active is None:
                self._begin(loop, consumer, now_ns)

    def _is_wanted(self, loop: Loop) -> bool:
        return self._wanted_line is None or self._wanted_line == loop.record.line

    def _measure(
        self,
        diagnosis: Diagnosis,
        consumer: Consumer,
        now_ns: int,
        wait_ns: int | None,
        continuous: bool,
    ) -> None:
        try:
            diagnosis.boundary(consumer, now_ns, wait_ns, continuous)
        except Exception as error:
            # A fault of ours must not become the script's.
            note = self._with.recorder.note
            note(f"Measuring failed, and was given up: {type(error).__name__}: {error}")
            attempt(note, "closing a window", diagnosis.finish, "measuring failed")

    def _give_up_the_abandoned(self, loop: Loop, now_ns: int) -> None:
        """A loop that ended too early must not keep a later one from being measured."""
        if self._active is None:
            return
        former = self._active.loop
        one_fit_after_another = former.fit_begun and loop.fit_begun and not former.runs_elsewhere()
        if one_fit_after_another or now_ns - former.last_ns > _ABANDONED_NS:
            self._active.finish("the loop ended before this window was full")
            self._active = None
            # What it trained on a repeated batch must not outlast it, nor be put back later on,
            # over what this loop will have trained.
            self._with.state.give_back()

    def _begin(self, loop: Loop, consumer: Consumer, now_ns: int) -> None:
        loop.diagnosis = self._active = Diagnosis(loop, self._with)
        if self._held.may_try:
            loop.dataset = consumer.dataset
        self._diagnosed.append(loop)
        self.before_training()
        self._with.tell(LoopFound(loop.record.line))
        describe_environment(self._with.recorder.recording.environment, self._with.descriptions)
        self._with.recorder.save()
        loop.diagnosis.boundary(consumer, now_ns, None, continuous=False)

    def _learn_role(self, turn: _Turn) -> None:
        """A step that wrote a trainable variable makes its loop a training loop.

        What is written after a seam, such as weights that are loaded, is no step's work.
        """
        if self._updates.take_updated() and turn.last is not None and not turn.seam:
            record = turn.last.loop.record
            if not record.updates_variables:
                roles.learn(record)

    def _hold_as_soon_as_it_runs(self, consumer: Consumer, continuous: bool) -> None:
        """A loop that an earlier run of the script has measured: it may end within a few steps."""
        loop = consumer.loop
        if not loop.trains or not self._held.may_hold(loop):
            return
        loop.dataset = consumer.dataset
        if continuous and loop.started_up:
            self._with.recorder.save()
            self._measured(loop, consumer)

    def _measured(self, loop: Loop, consumer: Consumer) -> None:
        """One loop is measured: what would help it is tried, where the parent asks for that."""
        self._active = None
        goes_on = self._stopping.goes_on_after(loop)
        if consumer.hand_over != "fed" and self._held.hold(loop, consumer, goes_on=goes_on):
            return
        if self._held.was_held(loop):
            self._released(loop)
        else:
            self._stopping.go_on_or_stop(loop)
        self.when_measured()

    def _released(self, loop: Loop) -> None:
        # What the trials took is no step, and neither is the one that they ended in.
        self._turns.here.seam = True
        loop.clock.held()
        self._with.timeline.passed("aside", loop.last_ns, time.monotonic_ns())
        self._updates.take_updated()
        self._stopping.go_on_or_stop(loop)

    def try_pipelines_alone(self) -> None:
        """The script is over: loops that could not be held while they ran have their pipelines."""
        self._loops.keep_evaluated()
        self._held.try_pipelines_alone(self._loops.all())

    def stop(self) -> None:
        """End the script here.

        Raises:
            StopScript: always, unless the process ends.
        """
        self._stopping.stop()

    def keep_pipelines(self) -> None:
        """Keep the pipelines that run now until the process is gone."""
        self._stopping.keep_pipelines()

    def let_go(self) -> None:
        """Drop all that is the script's, so that it goes when its modules go."""
        self._active = None
        self.streak.let_go()
        self._held_batch.let_go()
        self._fed.let_go()
        for turn in self._turns.all():
            turn.last = None
        for loop in self._loops.all():
            loop.let_go()


def _runs(loop: Loop, function: Any) -> None:
    """The loop's steps call this function, which trains."""
    if not loop.has_step(function):
        loop.step_functions.append(weakref.ref(function))
        name = source_location(function)
        if name not in loop.record.step_functions:
            loop.record.step_functions.append(name)
