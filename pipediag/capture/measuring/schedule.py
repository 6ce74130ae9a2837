"""The windows of a training loop, in turn: warm-up, baseline, stacks, ids, profile, repeat."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from enum import IntEnum, auto
from statistics import median
from typing import TypeVar

from pipediag.capture.loops.loop import Consumer, Loop, Stage
from pipediag.capture.measuring.embeddings import Embeddings
from pipediag.capture.measuring.pace import fills_a_cache
from pipediag.capture.measuring.sampling import (
    CALLBACK_CLOCK,
    PYTHON_CLOCK,
    StackSampler,
    python_threads,
)
from pipediag.capture.measuring.windows import Instruments, Window, lived_on_a_stock
from pipediag.capture.process import train_along
from pipediag.capture.runtime import IteratorModel
from pipediag.session.messages import LoopMeasured, WindowBegun
from pipediag.vocabulary import WindowKind

# Of shorter epochs no step can be spared.
_LONG_EPOCH = 10
_MOST_STOCKS = 3
"""Baselines that may live on a stock of batches: one that shrinks on and on is taken as it is."""
_SAVE_EVERY_NS = 2_000_000_000
"""Own choice: what outlives a killed process. A large recording takes as long as some steps."""

_Step = tuple[Consumer, int]
"""The iterator that begins the next step, and when the one that ended did so."""
Result = TypeVar("Result")
Steps = Generator[bool, _Step, Result]
"""Resumed with each step that decides something; yields True if it took time that is no step's."""


class Phase(IntEnum):
    """Numbers: to hash another Enum runs Python code, at each step."""

    WARMUP = auto()
    BASELINE = auto()
    STACKS = auto()
    IDS = auto()
    PROFILE = auto()
    EPOCH_END = auto()
    REPEAT = auto()
    DONE = auto()


_WITHOUT_A_WINDOW = (Phase.IDS, Phase.EPOCH_END, Phase.DONE)


class Diagnosis:
    """Driven by `boundary`, once a step, on the training thread.

    A step lasts from one boundary to the next. Reading tf.data's model takes a few milliseconds, so
    the steps right after a reading are skipped.
    """

    def __init__(self, loop: Loop, instruments: Instruments) -> None:
        self.loop = loop
        self._with = instruments
        self._start_ns = 0
        self._skip = 0
        self._decide_every = 1
        self._decided_at = 0
        self._steps_in_epoch = 0
        self._since_trace: list[int] = []
        self.embeddings = Embeddings(loop, instruments)
        self._taken: Consumer | None = None
        """The one whose batches are read or repeated."""
        self._beside = ExitStack()
        """Ends what runs beside the steps of the window that is open."""
        self.phase = Phase.WARMUP
        self._window = Window("warmup", loop, instruments)
        self._windows = self._measure()
        next(self._windows)

    @property
    def repeats(self) -> bool:
        return self.phase is Phase.REPEAT

    @property
    def reads_batches(self) -> bool:
        return self.phase is Phase.IDS

    @property
    def measuring(self) -> bool:
        return self.phase is not Phase.DONE

    @property
    def spare_steps(self) -> int:
        """Return how many of the next steps decide nothing: they are only added."""
        if self.phase is not Phase.BASELINE or self._decide_every == 1 or self._skip:
            return 0
        in_block = len(self._window.block.starts_ns) % self._decide_every
        spare = self._decide_every - 1 - max(in_block, self._undecided)
        left = self.loop.steps_left
        # The step on the last batch decides something: trials hold the loop there.
        return spare if left is None else min(spare, left // self.loop.record.batches_per_call - 1)

    @property
    def _undecided(self) -> int:
        """Return the steps of the window since it was asked last whether it is over."""
        return self._window.count - self._decided_at

    def traced(self, *, again: bool) -> None:
        """Note that the running step traced a training function, `again` or for the first time.

        From the begin of an epoch on that is a new model's start-up, and no step to be measured.
        """
        self._since_trace.clear()
        if not again and self._steps_in_epoch == 0 and self.phase is not Phase.WARMUP:
            self._skip = max(self._skip, 1)
            self._with.profiler.mark_start_up()

    def boundary(
        self, consumer: Consumer, now_ns: int, wait_ns: int | None, continuous: bool
    ) -> None:
        start_ns, self._start_ns = self._start_ns, now_ns
        if self.phase is Phase.DONE:
            return
        if not continuous:
            self._go_on(consumer)
            return
        self._steps_in_epoch += 1
        if self._with.profiler.script_is_profiling:
            self._skip = max(self._skip, 2)
        if self._skip > 0:
            self._skip -= 1
            self._clock_python()
        elif self.phase not in _WITHOUT_A_WINDOW:
            duration = now_ns - start_ns
            self._window.add(start_ns, duration, wait_ns)
            self._since_trace.append(duration)
        if self.phase is not Phase.BASELINE or self._decision_is_due():
            self._decide(consumer, now_ns)

    def interrupted(self, consumer: Consumer, exhausted: bool) -> None:
        """Interrupt the steps: an epoch ended, or something else consumes batches."""
        self._with.profiler.end_mark()
        self._clock_python(runs=False)
        self.loop.record.boundaries += 1
        if self.phase is not Phase.PROFILE:
            self.loop.saw_undisturbed_end = True
        if self.phase not in _WITHOUT_A_WINDOW:
            self._window.interrupted(consumer, exhausted)

    def finish(self, reason: str | None) -> None:
        """Close what is open, and save it; `reason` says why the open window is not complete."""
        if not self.measuring:
            return
        # First, as what follows may fail: the script must not go on with what is ours.
        phase, self.phase = self.phase, Phase.DONE
        self._give_back()
        self._beside.close()
        if phase not in _WITHOUT_A_WINDOW:
            self._window.close(reason)
        self.embeddings.end()
        self._with.recorder.save()

    def _go_on(self, consumer: Consumer) -> None:
        """Begin steps behind something else, which are another epoch's."""
        if consumer.hand_over == "call" and self._steps_in_epoch >= _LONG_EPOCH:
            # The call asks for the first batch itself, and so waits for the pipeline's start.
            self._skip = max(self._skip, 1)
        self._steps_in_epoch = 0
        if self.phase is Phase.REPEAT and consumer.stage is not Stage.REPEATED:
            self._hand_out_again(consumer)
        elif self.phase is Phase.IDS:
            self._take(consumer, Stage.READING)
        self._clock_python()
        self._mark()

    def _clock_python(self, *, runs: bool = True) -> None:
        if self.phase is Phase.BASELINE:
            PYTHON_CLOCK.running = runs and self._skip == 0

    def _mark(self) -> None:
        # A step that is skipped, as it pays for the profiler's start, is not marked either.
        if self.phase is Phase.PROFILE and self._with.profiler.running and not self._skip:
            self._with.profiler.mark_step(self._window.count)

    def _decision_is_due(self) -> bool:
        """Return True every few steps, so that a block ends before tf.data forgets its gap times.

        Of the window as well: a block ends with its epoch, and one of short epochs never has them.
        """
        in_block = len(self._window.block.starts_ns)
        due = in_block % self._decide_every == 0 or self._undecided >= self._decide_every
        return due or self.loop.at_last_batch

    def _decide(self, consumer: Consumer, now_ns: int) -> None:
        if self.loop.at_last_batch and self._is_measured(now_ns):
            # While trials hold the loop it goes on; later windows would not get their steps.
            took_time = True
            if self.phase is Phase.BASELINE:
                self._window.end_block(consumer)
                self.finish(None)
            else:
                self.finish("the loop's last batch came before this window was full")
            self._with.tell(LoopMeasured(self.loop.record.line))
        else:
            try:
                took_time = self._windows.send((consumer, now_ns))
            except StopIteration:
                took_time = True
                self.finish("measuring was interrupted")  # else it is over
        if took_time:
            # What we did took time that is no part of the next step.
            self._start_ns = time.monotonic_ns()
            self.loop.set_aside(self._start_ns - now_ns)
            self._with.timeline.passed("aside", now_ns, self._start_ns)
            self._clock_python()
        self._mark()

    def _is_measured(self, now_ns: int) -> bool:
        """Return True if the step time is known, and a window is open that takes more steps."""
        window, pace = self._window, self._with.pace
        elapsed_ns = now_ns - window.record.start_ns
        if self.phase is Phase.BASELINE:
            return pace.baseline_done(window.count, elapsed_ns, 0)
        if self.phase is Phase.PROFILE:
            running = self._with.profiler.running
            return running and not pace.enough("profile", window.count, elapsed_ns, 0)
        return self.phase is Phase.STACKS or self.phase is Phase.IDS

    # The windows, one after the other.

    def _measure(self) -> Steps[None]:
        consumer = yield from self._warm_up()
        yield from self._baseline(consumer)
        consumer = yield from self._sample_stacks()
        consumer = yield from self._read_ids(consumer)
        consumer = yield from self._profile(consumer)
        consumer = yield from self._await_epoch_end(consumer)
        yield from self._repeat(consumer)
        self.phase = Phase.DONE
        self._with.recorder.save()
        self._with.tell(LoopMeasured(self.loop.record.line))

    def _open(self, phase: Phase, kind: WindowKind) -> Window:
        self.phase, self._window = phase, Window(kind, self.loop, self._with)
        return self._window

    def _enough(self, _: Consumer, now_ns: int) -> bool:
        """Return True if the window that is open has the steps that it needs."""
        window, left = self._window, self.loop.steps_left
        return self._with.pace.enough(
            window.record.kind, window.count, now_ns - window.record.start_ns, left
        )

    def _until(self, is_over: Callable[[Consumer, int], bool]) -> Steps[Consumer]:
        """Let steps pass; what was done before the first one took time. Return the iterator."""
        consumer, now_ns = yield True
        while not is_over(consumer, now_ns):
            consumer, now_ns = yield False
        return consumer

    def _warm_up(self) -> Steps[Consumer]:
        window, filled = self._window, False
        while True:
            consumer, now_ns = yield False
            elapsed_ns, left = now_ns - window.record.start_ns, self.loop.steps_left
            warm, settled = self._with.pace.warmed_up(self._since_trace, elapsed_ns, left)
            if not warm:
                continue
            if fills_a_cache(self.loop, self._with.recorder, elapsed_ns):
                filled = True
            elif filled:
                # Steps that filled it say nothing of those that follow.
                filled = False
                self._since_trace.clear()
            else:
                window.record.stable = settled
                window.close()
                return consumer

    def _baseline(self, consumer: Consumer) -> Steps[None]:
        """Measure the step time, once more where batches that were ready are being used up."""
        self._with.tell(WindowBegun("baseline"))
        self.loop.record.several_iterators = bool(self.loop.joined)
        before = self._window.snapshot(consumer)
        self._with.recorder.save()
        for stocks in range(_MOST_STOCKS + 1):
            after = yield from self._time_steps()
            if stocks == _MOST_STOCKS or not lived_on_a_stock(before, after):
                break
            before = after
            self._window.record.kind = "warmup"
            self._window.close()
            self._window.record.reason = "batches stocked up earlier were being used up"
        self._window.close()
        self._with.recorder.save()

    def _time_steps(self) -> Steps[IteratorModel | None]:
        window, pace = self._open(Phase.BASELINE, "baseline"), self._with.pace
        self._skip = pace.steps_to_skip(self._typical_ns())
        self._decide_every = pace.steps_between_decisions(self._typical_ns())
        self._decided_at = 0
        PYTHON_CLOCK.begin()

        def end_clock() -> None:
            window.record.python_calls = PYTHON_CLOCK.end()

        self._beside.callback(end_clock)
        took_time, saved_ns = True, window.record.start_ns
        while True:
            consumer, now_ns = yield took_time
            self._decided_at = window.count
            left = self.loop.steps_left
            half_of_left = None if left is None else left // 2
            if pace.baseline_done(window.count, now_ns - window.record.start_ns, half_of_left):
                break
            durations = window.block.durations_ns
            per_call = self.loop.record.batches_per_call
            took_time = pace.block_done(len(durations), sum(durations), per_call)
            if took_time:
                window.end_block(consumer)
                if now_ns - saved_ns > _SAVE_EVERY_NS:
                    self._with.recorder.save()
                    saved_ns = now_ns
                self._skip = pace.steps_to_skip(self._typical_ns())
        self._beside.close()
        return window.end_block(consumer)

    def _sample_stacks(self) -> Steps[Consumer]:
        self._with.tell(WindowBegun("stacks"))
        window = self._open(Phase.STACKS, "stacks")
        sampler = StackSampler(threading.get_ident())
        self._beside.callback(self._end_stacks, sampler)
        CALLBACK_CLOCK.start()
        consumer = yield from self._until(self._enough)
        self._beside.close()
        window.close()
        return consumer

    def _end_stacks(self, sampler: StackSampler) -> None:
        window, callbacks_ns = self._window, CALLBACK_CLOCK.stop()
        stacks = sampler.stop(self.loop.record.id, window.spans_ns())
        stacks.callbacks_ns, stacks.steps_ns = callbacks_ns, window.steps_ns()
        self._with.recorder.recording.stacks.append(stacks)
        window.record.python_threads = python_threads()

    def _read_ids(self, consumer: Consumer) -> Steps[Consumer]:
        if not self.embeddings.begin(consumer):
            return consumer
        self.phase, took_time, goes_on = Phase.IDS, True, True
        while goes_on:
            self._take(consumer, Stage.READING)
            consumer, now_ns = yield took_time
            took_time, goes_on = False, self.embeddings.goes_on(now_ns, self.loop.steps_left)
        self._give_back()
        return consumer

    def _profile(self, consumer: Consumer) -> Steps[Consumer]:
        window, profiler = self._open(Phase.PROFILE, "profile"), self._with.profiler
        refused = profiler.start(self.loop.record.id)
        if refused is not None:
            window.close(refused)
            return consumer
        self._with.tell(WindowBegun("profile"))
        self._skip = 1
        self._beside.callback(self._end_profile)
        consumer = yield from self._until(
            lambda consumer, now_ns: not profiler.running or self._enough(consumer, now_ns)
        )
        lost = None if profiler.running else "the script's own profiler took over"
        self._beside.close()
        window.close(lost)
        self._with.recorder.save()
        return consumer

    def _end_profile(self) -> None:
        if not self._with.profiler.running:
            return
        failed = self._with.profiler.stop()
        if failed is None:
            self._window.record.trace_directory = str(self._with.profiler.directory)
        else:
            self._with.recorder.note(f"There is no trace: {failed}.")

    def _await_epoch_end(self, consumer: Consumer) -> Steps[Consumer]:
        self.phase = Phase.EPOCH_END
        since_ns, waits = time.monotonic_ns(), self._with.pace.waits_for_epoch_end
        if not waits(self.loop, 0):
            return consumer
        return (yield from self._until(lambda _, now_ns: not waits(self.loop, now_ns - since_ns)))

    def _repeat(self, consumer: Consumer) -> Steps[None]:
        if not self._may_repeat(consumer):
            return
        lack = train_along(self.loop.runtime) or self._with.state.keep()
        if lack is not None:
            self._with.recorder.note(f"The consumer was not measured on a repeated batch: {lack}.")
            return
        self._with.tell(WindowBegun("repeat"))
        window = self._open(Phase.REPEAT, "repeat")
        self._hand_out_again(consumer)
        consumer = yield from self._until(
            lambda consumer, now_ns: consumer.stage is Stage.OWN or self._enough(consumer, now_ns)
        )
        # Without one, no step of this window would be what it says.
        window.close("no batch could be repeated" if consumer.stage is Stage.OWN else None)
        self._give_back()

    def _may_repeat(self, consumer: Consumer) -> bool:
        """Return True if a batch may be repeated, which costs the script its own batches.

        That is where it would be stopped anyway, and where Python in the pipeline fights with the
        loop for the GIL, so that nothing else tells what input costs.
        """
        fixed = consumer.distributed or consumer.hand_over == "fed" or bool(self.loop.joined)
        if fixed or self._with.pace.settings.run_to_end:
            return False
        recorder, pace = self._with.recorder, self._with.pace
        if pace.ends_here(self.loop):
            return True
        rehearsal = pace.may_be_a_rehearsal(self.loop.seconds_in_all)
        return recorder.pipelines_call_python and not rehearsal

    def _hand_out_again(self, consumer: Consumer) -> None:
        self._take(consumer, Stage.CATCHING)
        self._skip = 2

    def _take(self, consumer: Consumer, stage: Stage) -> None:
        self._give_back()
        self._taken = consumer
        consumer.hand_out(stage)

    def _give_back(self) -> None:
        """Let the iterator whose batches were taken hand out its own again, if any was."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.hand_out(Stage.OWN)

    def _typical_ns(self) -> float:
        recent = self._since_trace[-20:]
        return median(recent) if recent else 0.0
