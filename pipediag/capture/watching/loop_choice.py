"""The choice of the loop to measure, and of what follows: trials, a later loop, or the end."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pipediag.capture.guard import StopScript, nothing
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring.schedule import Diagnosis
from pipediag.capture.measuring.windows import Instruments
from pipediag.capture.process import let_pass
from pipediag.capture.recorder import describe_environment
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session import messages
from pipediag.session.messages import LoopFound
from pipediag.session.recorded_loops import Evaluation
from pipediag.tensorflow_names import SEVERAL_WORKERS
from pipediag.vocabulary import EVALUATING

_WARM_CALLS = 2
"""Calls before the measured ones: the first traces the step and starts the pipeline."""
_FEWEST_CALLS, _MOST_CALLS = 4, 32
"""Fewest and most calls that are timed. Own choices: the times are read after the fewest, and again
whenever their number has doubled, as an evaluation may be over; tf.data remembers three times as
many gaps as the most."""


@dataclass
class _Evaluation:
    consumer: weakref.ref[Consumer]
    again: bool
    """True if a shorter pass was timed before."""
    wanted: int = _FEWEST_CALLS
    calls: int = 1
    began_ns: int = 0
    set_aside_ns: int = 0
    """Time of pipediag's own work in the loop until then."""


@dataclass
class Evaluations:
    """Times some steps of each loop that evaluates, in one pass over its data; of a short one in
    the second pass once more, as the first may fill a cache or live on what was made meanwhile."""

    _with: Instruments
    _timed: dict[str, _Evaluation] = field(default_factory=dict)

    def step(self, consumer: Consumer, now_ns: int) -> None:
        record = consumer.loop.record
        if record.role not in EVALUATING:
            return
        timed = self._timed.get(record.id)
        if timed is None or timed.consumer() is not consumer:
            known, most = record.evaluation is not None, _WARM_CALLS + _MOST_CALLS
            if timed is None or not known or (timed.calls < most and not timed.again):
                self._timed[record.id] = _Evaluation(weakref.ref(consumer), again=known)
            return
        timed.calls += 1
        if timed.calls == _WARM_CALLS:
            timed.began_ns, timed.set_aside_ns = now_ns, record.set_aside_ns
        if timed.calls == _WARM_CALLS + timed.wanted and timed.wanted <= _MOST_CALLS:
            steps = timed.wanted * record.batches_per_call
            aside_ns = record.set_aside_ns - timed.set_aside_ns
            took_ns = now_ns - timed.began_ns - aside_ns
            record.evaluation = Evaluation(steps, took_ns / 1e6 / steps)
            timed.wanted *= 2
            read = partial(self._read, aside_ns=aside_ns)
            self._with.recorder.attempt("timing an evaluation", read, consumer, now_ns)

    def _read(self, consumer: Consumer, now_ns: int, *, aside_ns: int) -> None:
        """Record the gap times until now; the time to read the model belongs to no step."""
        loop, evaluation = consumer.loop, consumer.loop.record.evaluation
        model = loop.runtime.model_of(consumer.iterator())
        gaps_us = model.gaps_us[-evaluation.steps :] if model and evaluation else []
        if evaluation is not None and gaps_us:
            # A gap lies between two requests, so that it holds no waiting for either.
            gap_ms = max(0.0, sum(gaps_us) / 1e3 - aside_ns / 1e6) / len(gaps_us)
            evaluation.consumer_ms = min(gap_ms, evaluation.step_ms)
        read_ns = time.monotonic_ns()
        loop.record.last_ns = loop.last_ns + read_ns - now_ns
        loop.set_aside(read_ns - now_ns)
        self._with.timeline.passed("aside", now_ns, read_ns)


_MOST_DIAGNOSED = 6
_STEPS_TO_START_UP = 2
"""Steps in which a loop starts up: the first builds the model and traces, the second may trace
again."""
_SPARE_ONCE_MEASURED = 64
"""Steps noted between two reports of a loop that was measured. Own choice: they are lost where the
process is killed."""
_LONGER = 0.5
"""Share of the time of measuring for which a worker goes on for the others. Own choice."""
_LONGEST_EVALUATION_NS = 60_000_000_000
"""Longest wait for an evaluation. It is as long as the script took until then, if that is less. Own
choice."""
# A loop that has not come back for so long, while another trains, is over.
_ABANDONED_NS = 3_000_000_000


@dataclass
class LoopChoice:
    """Measures one loop at a time, each in its turn; called at every step of the script's own."""

    _updates: UpdateWatch
    _with: Instruments
    _held: Trials
    _leave: Callable[[], None] | None
    """Function that ends a process whose script swallows its stop."""
    _keep: Callable[[], None]
    """Keeps what is evaluated."""
    active: Diagnosis | None = None
    """Diagnosis of the loop that is being measured: a plain attribute, read on every step."""
    before_training: Callable[[], None] = nothing
    """Called when a training loop has its first batch and has made no step with it."""
    deadline_ns: int | None = None
    """Time until which later loops are waited for; None before any was measured."""
    kept_alive: list[Any] = field(default_factory=list)
    """Handles of iterators of trials or of a stopped script, which the process never frees."""
    _begun: int = 0
    _evaluates_for_ns: int = 0
    """Time beyond the deadline for an evaluation, behind the training or between two epochs."""
    _stopped: bool = False

    def __post_init__(self) -> None:
        self._settings = settings = self._with.pace.settings
        self._holds_only = settings.hold_loop is not None
        self._wanted_line = settings.loop
        self._evaluations = Evaluations(self._with)

    @property
    def reads_batches(self) -> bool:
        """Return True if ids are read from the arguments of functions that are called."""
        return self.active is not None and self.active.reads_batches

    def repeats(self, loop: Loop) -> bool:
        """Return True if the loop was handed a batch again: the step is ours, not the script's."""
        active = self.active
        return active is not None and active.loop is loop and bool(active.repeats)

    def spare_steps(self, loop: Loop) -> int:
        active = self.active
        if active is not None:
            return active.spare_steps if active is loop.diagnosis else 0
        measured = loop.diagnosis is not None and not loop.diagnosis.measuring
        decides = self._held.loop is not None or self.deadline_ns is not None
        return _SPARE_ONCE_MEASURED if measured and not decides else 0

    def step(self, consumer: Consumer, now_ns: int, wait_ns: int | None, continuous: bool) -> None:
        """Measure the loop, or begin to if it trains; stop the script where enough was measured."""
        loop = consumer.loop
        if self._holds_only:
            self._hold_as_soon_as_it_runs(consumer, continuous)
        elif loop.diagnosis is not None:
            self._measure(loop.diagnosis, consumer, now_ns, wait_ns, continuous)
            if loop.diagnosis is self.active and not self.active.measuring:
                self._measured(loop, consumer)
        elif not loop.trains:
            self._evaluations.step(consumer, now_ns)
        elif self._begun < _MOST_DIAGNOSED and self._wanted_line in (None, loop.record.line):
            self._give_up_the_abandoned(loop, now_ns)
            if self.active is None:
                self._begin(loop, consumer, now_ns)
        deadline_ns = self.deadline_ns
        evaluates = loop.record.role in EVALUATING and not loop.record.only_reads
        if deadline_ns is not None and evaluates:
            deadline_ns += self._evaluates_for_ns
        waits = self.active is None and self._held.loop is None
        if deadline_ns is not None and now_ns > deadline_ns and waits:
            self.stop()

    def released(self, loop: Loop, consumer: Consumer) -> None:
        # TensorFlow destroys an iterator once the thread that tunes it wakes up, which sleeps for
        # longer the longer the iterator lives: for a minute behind trials of a minute.
        self.kept_alive += loop.runtime.handles_of([consumer.iterator()])
        self._trials_over(loop)
        self.go_on_or_stop(loop)

    def left(self, loop: Loop) -> None:
        self._held.leave("the script left its training loop in the middle of them")
        self._trials_over(loop)

    def script_over(self, reason: str) -> None:
        """End what is measured and what is tried, and keep it; give back what is the script's."""
        attempt = self._with.recorder.attempt
        active, self.active = self.active, None
        if active is not None:
            attempt("closing a window", active.finish, reason)
        attempt("ending trials", self._held.stop, reason)
        attempt("restoring the training", self._with.state.give_back)

    def _trials_over(self, loop: Loop) -> None:
        self._with.timeline.passed("aside", loop.last_ns, time.monotonic_ns())
        self._updates.take_updated()

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
            let_pass(error)
            # A fault of ours must not become the script's.
            recorder = self._with.recorder
            recorder.note(f"Measuring failed, and was given up: {type(error).__name__}: {error}")
            recorder.attempt("closing a window", diagnosis.finish, "measuring failed")

    def _give_up_the_abandoned(self, loop: Loop, now_ns: int) -> None:
        """Close the diagnosis of a loop that ended early, so that a later one is measured."""
        if self.active is None:
            return
        former = self.active.loop
        one_fit_after_another = former.fit_begun and loop.fit_begun and not former.runs_elsewhere()
        if one_fit_after_another or now_ns - former.last_ns > _ABANDONED_NS:
            self.active.finish("the loop ended before this window was full")
            self.active = None
            # What it trained on a repeated batch must not outlast it, nor be put back later on,
            # over what this loop will have trained.
            self._with.state.give_back()

    def _begin(self, loop: Loop, consumer: Consumer, now_ns: int) -> None:
        loop.diagnosis = self.active = Diagnosis(loop, self._with)
        if self._held.makes_trials:
            loop.dataset = consumer.dataset
        self._begun += 1
        recorder = self._with.recorder

        self.before_training()
        self._with.tell(LoopFound(loop.record.line))
        describe_environment(recorder.recording.environment, self._with.descriptions)
        recorder.save()
        loop.diagnosis.boundary(consumer, now_ns, None, continuous=False)

    def _hold_as_soon_as_it_runs(self, consumer: Consumer, continuous: bool) -> None:
        """Hold a loop that an earlier run has measured: it may end within a few steps."""
        loop = consumer.loop
        if not loop.trains or not self._held.may_hold(loop):
            return
        loop.dataset = consumer.dataset
        record = loop.record
        if continuous and record.steps > _STEPS_TO_START_UP * record.batches_per_call:
            self._with.recorder.save()
            self._measured(loop, consumer)

    def _measured(self, loop: Loop, consumer: Consumer) -> None:
        """Let the parent try changes that may help the loop, and then go on or stop the script."""
        self.active = None
        if self._settings.look_ahead_s:
            until_now_ns = time.monotonic_ns() - self._with.recorder.recording.started_ns
            self._evaluates_for_ns = min(until_now_ns, _LONGEST_EVALUATION_NS)
        goes_on = self.goes_on_after(loop)
        if not loop.joined and self._held.hold(loop, consumer, more_to_come=goes_on):
            return
        if self._held.was_held(loop):
            self.released(loop, consumer)
        else:
            self.go_on_or_stop(loop)

    # How the script goes on.

    def goes_on_after(self, loop: Loop) -> bool:
        """Return True if the script goes on when this loop was measured."""
        if self._settings.run_to_end:
            return True
        if self._with.state.lost is not None:
            return False
        return not self._with.pace.ends_here(loop) and not self._was_disturbed()

    def go_on_or_stop(self, loop: Loop) -> None:
        """Go on to see later loops, where that is cheap, or stop the script."""
        if self._settings.run_to_end:
            return
        several = loop.record.strategy in SEVERAL_WORKERS
        if not several and not self.goes_on_after(loop):
            self.stop()
        elif self.deadline_ns is None:
            now_ns = time.monotonic_ns()
            more_ns = int(self._settings.look_ahead_s * 1e9)
            if several:
                # The others may not have seen enough yet, and can't go on alone.
                more_ns = max(more_ns, int(_LONGER * (now_ns - loop.record.started_ns)))
            self.deadline_ns = now_ns + more_ns

    def stop_the_disturbed(self) -> None:
        """Stop a script that can't go on, as a repeated batch has trained its model wrongly."""
        if self._was_disturbed() and not self._settings.run_to_end:
            self.stop()

    def stop(self) -> None:
        """End the script by StopScript; one that swallows it is ended by force the next time."""
        if self._stopped and self._leave is not None:
            self._leave()
        self._stopped = True
        self._with.timeline.closed()
        self._with.state.give_back()
        self.keep_pipelines()
        self._keep()
        self._with.tell(messages.Stopping())
        raise StopScript

    def keep_pipelines(self) -> None:
        self.kept_alive += self._with.running_pipelines()

    def _was_disturbed(self) -> bool:
        return any(
            window.kind == "repeat" and window.blocks
            for window in self._with.recorder.recording.windows
        )
