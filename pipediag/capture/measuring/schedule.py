"""The windows of a training loop, in turn: warm-up, baseline, stacks, profile, repeat.

Between stacks and profile a few batches are looked at, for the ids of embeddings. After the profile
the first epoch's end is awaited where it is near: validation and callbacks may take most of a run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import IntEnum, auto
from statistics import median

from pipediag.capture.loops.loop import Consumer, Loop, Stage, StandIn
from pipediag.capture.measuring.embeddings import Embeddings
from pipediag.capture.measuring.pace import fills_a_cache
from pipediag.capture.measuring.sampling import (
    CALLBACK_CLOCK,
    PYTHON_CLOCK,
    StackSampler,
    python_threads,
)
from pipediag.capture.measuring.windows import Blocks, Instruments, OpenWindow
from pipediag.capture.process import train_along
from pipediag.session.messages import LoopMeasured, WindowBegun

# Of shorter epochs no step can be spared.
_LONG_EPOCH = 10


class Phase(IntEnum):
    """Numbers: to hash another Enum runs Python code, at each step."""

    WARMUP = auto()
    BASELINE = auto()
    STACKS = auto()
    LOOK = auto()
    PROFILE = auto()
    EPOCH_END = auto()
    REPEAT = auto()
    DONE = auto()


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
        self._awaited_ns = 0
        """Since when the end of an epoch is awaited."""
        self._since_trace: list[int] = []
        self._blocks = Blocks(loop, instruments.recorder)
        self._fills = False
        self._stacks: StackSampler | None = None
        self.embeddings = Embeddings(loop, instruments)
        self._taken: StandIn | None = None
        """Where a repeated batch is handed out, or the one that is to be."""
        self.phase = Phase.WARMUP
        self._window = OpenWindow.begin("warmup", self.loop, self._with)

    @property
    def repeats(self) -> bool:
        """Return True if its steps train on one batch again and again."""
        return self.phase is Phase.REPEAT

    @property
    def looks(self) -> bool:
        """Return True if batches are read on their way to its steps."""
        return self.phase is Phase.LOOK

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

    @property
    def measuring(self) -> bool:
        return self.phase is not Phase.DONE

    @property
    def _adds_steps(self) -> bool:
        """Return True if a window is open that its steps are added to."""
        return self.phase not in (Phase.LOOK, Phase.EPOCH_END, Phase.DONE)

    def traced(self, *, again: bool) -> None:
        """Note that the running step traced a training function, `again` or for the first time.

        Where another function trains from the begin of an epoch on, a new model's, its first call
        is its start-up, and no step of those that are measured.
        """
        self._since_trace.clear()
        if not again and self._steps_in_epoch == 0 and self.phase is not Phase.WARMUP:
            self._skip = max(self._skip, 1)
            self._with.profiler.mark_start_up()

    def boundary(
        self, consumer: Consumer, now_ns: int, wait_ns: int | None, continuous: bool
    ) -> None:
        """End a step, and begin the next one."""
        if self.phase is Phase.DONE:
            self._start_ns = now_ns
            return
        if not continuous:
            self._start_ns = now_ns
            if consumer.hand_over == "call" and self._steps_in_epoch >= _LONG_EPOCH:
                # The call asks for the first batch itself, and so waits for the pipeline's start.
                self._skip = max(self._skip, 1)
            self._steps_in_epoch = 0
            if self.phase is Phase.REPEAT and consumer.stand_in.stage is not Stage.REPEATED:
                self._hand_out_again(consumer)
            elif self.phase is Phase.LOOK:
                self.embeddings.read_next(consumer)
            self._steps_go_on()
            self._mark()
            return
        self._steps_in_epoch += 1
        if self._with.profiler.script_is_profiling:
            self._skip = max(self._skip, 2)
        if self._skip > 0:
            self._skip -= 1
            self._steps_go_on()
        elif self._adds_steps:
            duration = now_ns - self._start_ns
            self._window.add(self._start_ns, duration, wait_ns, self.loop.record.batches_per_call)
            self._since_trace.append(duration)
        self._start_ns = now_ns
        if (
            self.phase is Phase.BASELINE
            and not self._decision_is_due()
            and not self.loop.at_last_batch
        ):
            return
        self._advance(consumer, now_ns)

    def interrupted(self, consumer: Consumer, exhausted: bool) -> None:
        """Interrupt the steps: an epoch ended, or something else consumes batches."""
        self._with.profiler.end_mark()
        PYTHON_CLOCK.run(self.loop.record.id, running=False)
        self.loop.record.boundaries += 1
        if self._adds_steps and self._window.block.durations_ns:
            self._blocks.interrupted(self._window, consumer, exhausted)

    def finish(self, reason: str, *, complete: bool = False) -> None:
        """Close what is open, and save it: no more steps of the loop are measured.

        `reason` says why the open window is not `complete`.
        """
        if not self.measuring:
            return
        # First, as what follows may fail: the script must not go on with what is ours.
        phase, self.phase = self.phase, Phase.DONE
        self._give_back()
        if phase is Phase.PROFILE:
            self._end_profile()
        if phase is Phase.BASELINE:
            self._window.record.python_calls = PYTHON_CLOCK.end(self.loop.record.id)
        if self._stacks is not None:
            self._end_stacks()
        if phase not in (Phase.LOOK, Phase.EPOCH_END):
            self._window.close(complete=complete, reason=None if complete else reason)
        self.embeddings.end()
        self._with.recorder.save()

    def _steps_go_on(self) -> None:
        """Let what samples the script beside its steps run in steps that count, and not between."""
        counts = self._skip == 0 and self.phase is Phase.BASELINE
        PYTHON_CLOCK.run(self.loop.record.id, running=counts)

    def _advance(self, consumer: Consumer, now_ns: int) -> None:
        if self._act(consumer, now_ns):
            # What we did took time that is no part of the next step.
            self._start_ns = time.monotonic_ns()
            self.loop.clock.set_aside(self._start_ns - now_ns)
            self._with.timeline.passed("aside", now_ns, self._start_ns)
            self._steps_go_on()
        self._mark()

    def _act(self, consumer: Consumer, now_ns: int) -> bool:
        if self.loop.at_last_batch and self._is_measured(now_ns):
            self._skip_to_trials(consumer)
            return True
        return _DURING[self.phase](self, consumer, now_ns)

    def _is_measured(self, now_ns: int) -> bool:
        """Return True if the step time is known, and a window is open that takes more steps."""
        window = self._window
        if self.phase is Phase.BASELINE:
            return self._with.pace.baseline_done(window.count, window.elapsed_ns(now_ns), 0)
        return self.phase is Phase.STACKS or self.phase is Phase.LOOK

    def _skip_to_trials(self, consumer: Consumer) -> None:
        """End the diagnosis at the loop's last batch, the last moment at which it can be held.

        While trials hold the loop it goes on; the windows that follow would not get their steps.
        """
        complete = self.phase is Phase.BASELINE
        if complete:
            self._blocks.end(self._window, consumer)
        self.finish("the loop's last batch came before this window was full", complete=complete)
        self._with.tell(LoopMeasured(self.loop.record.line))

    def _mark(self) -> None:
        # A step that is skipped, as it pays for the profiler's start, is not marked either.
        if self.phase is Phase.PROFILE and self._with.profiler.running and not self._skip:
            self._with.profiler.mark_step(self._window.count)

    # Each of these returns whether it did something that took time.

    def _during_warmup(self, consumer: Consumer, now_ns: int) -> bool:
        elapsed_ns, left = self._window.elapsed_ns(now_ns), self.loop.steps_left
        warm, settled = self._with.pace.warmed_up(self._since_trace, elapsed_ns, left)
        if not warm:
            return False
        if fills_a_cache(self.loop, self._with.recorder, elapsed_ns):
            self._fills = True
            return False
        if self._fills:
            # Steps that filled it say nothing of those that follow.
            self._fills = False
            self._since_trace.clear()
            return False
        self._window.record.stable = settled
        self._window.close(complete=True)
        self._with.tell(WindowBegun("baseline"))
        if self.loop.joined:
            self._choose_pipeline(consumer)
        self._blocks.begin(consumer)
        self._with.recorder.save()
        self._begin_baseline()
        return True

    def _begin_baseline(self) -> None:
        self.phase = Phase.BASELINE
        self._window = OpenWindow.begin("baseline", self.loop, self._with)
        self._skip = self._with.pace.steps_to_skip(self._typical_ns())
        self._decide_every = self._with.pace.steps_between_decisions(self._typical_ns())
        self._decided_at = 0
        PYTHON_CLOCK.begin(self.loop.record.id)

    def _choose_pipeline(self, consumer: Consumer) -> None:
        record, several = self.loop.record, 1 + len(self.loop.joined)
        slowest = self.loop.measures_slowest(consumer)
        which = (
            "one of them, as that waited for longest is not known"
            if slowest is None
            else "the one waited for longest, of the iterator made at line "
            f"{slowest.loop.record.line}"
        )
        self._with.recorder.note(
            f"Each step of the training loop at line {record.line} takes batches of {several} "
            f"iterators. Its input wait is for all of them; the pipeline that is shown is {which}."
        )

    def _decision_is_due(self) -> bool:
        """Return True every few steps, so that a block ends before tf.data forgets its gap times.

        Of the window as well: a block ends with its epoch, and one of short epochs never has them.
        """
        in_block = len(self._window.block.starts_ns)
        return in_block % self._decide_every == 0 or self._undecided >= self._decide_every

    def _during_baseline(self, consumer: Consumer, now_ns: int) -> bool:
        window, pace = self._window, self._with.pace
        self._decided_at = window.count
        left = self.loop.steps_left
        half_of_left = None if left is None else left // 2
        if pace.baseline_done(window.count, window.elapsed_ns(now_ns), half_of_left):
            return self._end_baseline(consumer)
        if pace.block_done(
            len(window.block.durations_ns),
            sum(window.block.durations_ns),
            self.loop.record.batches_per_call,
        ):
            self._blocks.end(window, consumer)
            self._skip = pace.steps_to_skip(self._typical_ns())
            return True
        return False

    def _end_baseline(self, consumer: Consumer) -> bool:
        self._window.record.python_calls = PYTHON_CLOCK.end(self.loop.record.id)
        if self._blocks.end_last(self._window, consumer):
            self._window.record.kind = "warmup"
            self._window.close(
                complete=True, reason="batches stocked up earlier were being used up"
            )
            self._begin_baseline()
            return True
        self._window.close(complete=True)
        self._with.recorder.save()
        self._with.tell(WindowBegun("stacks"))
        self.phase = Phase.STACKS
        self._window = OpenWindow.begin("stacks", self.loop, self._with)
        self._stacks = StackSampler(threading.get_ident())
        CALLBACK_CLOCK.start()
        return True

    def _during_stacks(self, consumer: Consumer, now_ns: int) -> bool:
        elapsed = self._window.elapsed_ns(now_ns)
        if not self._with.pace.stacks_done(self._window.count, elapsed, self.loop.steps_left):
            return False
        self._end_stacks()
        self._window.close(complete=True)
        if self.embeddings.begin(consumer):
            self.phase = Phase.LOOK
        else:
            self._begin_profile(consumer)
        return True

    def _during_look(self, consumer: Consumer, now_ns: int) -> bool:
        if self.embeddings.goes_on(consumer, now_ns, self.loop.steps_left):
            return False
        self._begin_profile(consumer)
        return True

    def _end_stacks(self) -> None:
        assert self._stacks is not None
        callbacks_ns = CALLBACK_CLOCK.stop()
        stacks, self._stacks = self._stacks.stop(self.loop.record.id, self._window.spans_ns()), None
        stacks.callbacks_ns, stacks.steps_ns = callbacks_ns, sum(self._window.durations())
        self._with.recorder.recording.stacks.append(stacks)
        self._window.record.python_threads = python_threads()

    def _begin_profile(self, consumer: Consumer) -> None:
        self.phase = Phase.PROFILE
        self._window = OpenWindow.begin("profile", self.loop, self._with)
        refused = self._with.pace.no_profile or self._with.profiler.start(self.loop.record.id)
        if refused is not None:
            self._window.close(complete=False, reason=refused)
            self._await_epoch_end(consumer)
            return
        self._with.tell(WindowBegun("profile"))
        self._skip = 1

    def _during_profile(self, consumer: Consumer, now_ns: int) -> bool:
        if not self._with.profiler.running:
            self._window.close(complete=False, reason="the script's own profiler took over")
        elif self._with.pace.profile_done(
            self._window.count, self._window.elapsed_ns(now_ns), self.loop.at_last_batch
        ):
            self._end_profile()
            self._window.close(complete=True)
        elif self.loop.at_last_batch:
            self._skip_to_trials(consumer)
            return True
        else:
            return False
        self._with.recorder.save()
        self._await_epoch_end(consumer)
        return True

    def _await_epoch_end(self, consumer: Consumer) -> None:
        self.phase = Phase.EPOCH_END
        self._awaited_ns = time.monotonic_ns()
        self._during_epoch_end(consumer, self._awaited_ns)

    def _during_epoch_end(self, consumer: Consumer, now_ns: int) -> bool:
        if self._with.pace.waits_for_epoch_end(self.loop, now_ns - self._awaited_ns):
            return False
        self._repeat_or_end(consumer)
        return True

    def _end_profile(self) -> None:
        failed = self._with.profiler.stop()
        if failed is None:
            self._window.record.trace_directory = str(self._with.profiler.directory)
        else:
            self._with.recorder.note(f"There is no trace: {failed}.")

    def _repeat_or_end(self, consumer: Consumer) -> None:
        if not self._may_repeat(consumer):
            self._end()
            return
        lack = train_along(self.loop.runtime) or self._with.state.keep()
        if lack is not None:
            self._with.recorder.note(f"The consumer was not measured on a repeated batch: {lack}.")
            self._end()
            return
        self._with.tell(WindowBegun("repeat"))
        self.phase = Phase.REPEAT
        self._window = OpenWindow.begin("repeat", self.loop, self._with)
        self._hand_out_again(consumer)

    def _may_repeat(self, consumer: Consumer) -> bool:
        """Return True if a batch may be repeated, which costs the script its own batches.

        That is done where it would be stopped anyway, and where nothing else may tell what input
        costs: Python in the pipeline fights with the loop for the interpreter lock. A short loop
        that ends by itself does not end the script for that: a longer one may follow.
        """
        fixed = consumer.distributed or consumer.hand_over == "fed" or bool(self.loop.joined)
        if fixed or self._with.pace.settings.run_to_end:
            return False
        recorder, pace = self._with.recorder, self._with.pace
        if pace.ends_here(self.loop.seconds_left, followed=self.loop.may_be_followed):
            return True
        rehearsal = pace.may_be_a_rehearsal(self.loop.seconds_in_all)
        return recorder.pipelines_call_python and not rehearsal

    def _hand_out_again(self, consumer: Consumer) -> None:
        self._give_back()
        self._taken = consumer.stand_in
        self._taken.enter(Stage.CATCHING)
        self._skip = 2

    def _give_back(self) -> None:
        """Let the iterator hand out again whose place a repeated batch has taken, if any."""
        taken, self._taken = self._taken, None
        if taken is not None:
            taken.enter(Stage.OWN)

    def _during_repeat(self, consumer: Consumer, now_ns: int) -> bool:
        if consumer.stand_in.stage is Stage.OWN:
            # The batch could not be repeated, so no step of this window would be what it says.
            self._window.close(complete=False, reason="no batch could be repeated")
        elif self._with.pace.repeat_done(self._window.count, self._window.elapsed_ns(now_ns)):
            self._window.close(complete=True)
        else:
            return False
        self._give_back()
        self._end()
        return True

    def _end(self) -> None:
        self.phase = Phase.DONE
        self._with.recorder.save()
        self._with.tell(LoopMeasured(self.loop.record.line))

    def _typical_ns(self) -> float:
        recent = self._since_trace[-20:]
        return median(recent) if recent else 0.0


_DURING: dict[Phase, Callable[[Diagnosis, Consumer, int], bool]] = {
    Phase.WARMUP: Diagnosis._during_warmup,
    Phase.BASELINE: Diagnosis._during_baseline,
    Phase.STACKS: Diagnosis._during_stacks,
    Phase.LOOK: Diagnosis._during_look,
    Phase.PROFILE: Diagnosis._during_profile,
    Phase.EPOCH_END: Diagnosis._during_epoch_end,
    Phase.REPEAT: Diagnosis._during_repeat,
}
