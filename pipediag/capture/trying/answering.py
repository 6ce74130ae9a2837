"""Runs what the parent asks for between two steps: an arm's first steps, a block, pulls alone.

The training loop itself is the consumer. An arm's iterator takes the place of the script's own, and
`boundary`, called once a step, counts. Only one arm is alive at a time: each block starts with a
fresh iterator. Of a loop that is over, or that Python does not drive, the pipeline alone is tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from pipediag.capture.link import CommandPipe, SilentParentError, UnknownCommandError
from pipediag.capture.loops.loop import Consumer, Loop, is_end_of_data
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.runtime import Variants
from pipediag.capture.signals import is_of_a_signal_handler, let_pass
from pipediag.capture.trying.arms import Arm, Arms, AsItIs
from pipediag.capture.trying.blocks import EpochWithin, MeasuredSteps, TimedBlock, Warmup
from pipediag.session.messages import (
    ArmCommand,
    ArmRefused,
    BlockRun,
    EndTrials,
    FromChild,
    Prepare,
    Prepared,
    Pull,
    RunBlock,
    TrialsOver,
)

# When such a step is told of, it has its batch, and the next one is called with the next model: no
# batch is in time for both.
_TAKES_ITS_BATCH_ITSELF = (
    "The model runs eagerly, so a step has its batch before another model can be put in its place. "
    "Let it run as a graph, and analyse again."
)
_INTERRUPTED = "the script was interrupted in the middle of them"
_PREPARED_AFTER = 2
_MOST_RESTARTS = 3


class Answering:
    """The conversation with the parent, on the training thread of one loop."""

    def __init__(
        self, loop: Loop, commands: CommandPipe, tell: Callable[[FromChild], None]
    ) -> None:
        self.loop = loop
        self.skipped: Sequence[Any] = ()
        """Callbacks of the script that are not called for the steps of the arm that runs."""
        self.over = False
        self.unheard = False
        """True if the parent may still ask for what nobody waits for any more."""
        self._commands = commands
        self._tell = tell
        self._pull = loop.runtime.pull
        self._model = self._variants(loop)
        self._clock = loop.runtime.clock()
        self._arms = Arms(loop, self._model)
        self._arm = ""
        self._running: Arm | None = None
        """That whose model makes the step that is called now; None for the script's own."""
        self._late = False
        """True if an arm waits for a step that was called before its model was in place."""
        self._iterator: Any = None
        self._consumer: Consumer | None = None
        self._preparing = 0
        self._same: int | None = None
        """Elements of the arm that is prepared that were the same in two passes."""
        self._began_ns = 0
        """When the arm that runs was given its iterator."""
        self._first_ns: int | None = None
        """What the first step of an arm that is prepared took from then on."""
        self._asked: RunBlock | None = None
        self._block: EpochWithin | TimedBlock | None = None
        self._restarts = 0
        self._failure: str | None = None

    def _variants(self, loop: Loop) -> Variants:
        if loop.trainer is None:
            return AsItIs()
        return loop.trainer.variants(loop.model() if loop.model else None, self._step_failed)

    def begin(self, consumer: Consumer) -> None:
        """Let the parent ask; the step that follows is the first of the first arm."""
        self._adopt(consumer)
        self._converse()

    def without_consumer(self) -> None:
        """Let the parent ask for the pipeline alone, until it asks no more."""
        self._converse()

    def boundary(self, consumer: Consumer, now_ns: int, continuous: bool) -> None:
        """A step ended and the next one begins."""
        self._adopt(consumer)
        if self._failure is not None:
            failure, self._failure = self._failure, None
            self._tell(ArmRefused(self._arm, failure))
        elif self._late:
            self._start_late()
            return
        elif not self._step(now_ns, continuous):
            return
        self._converse()

    def traced(self) -> None:
        """A function was traced in this step, and meanwhile the pipeline laid up a stock."""
        block, asked = self._block, self._asked
        if block is None or asked is None or not block.warms_up:
            return
        if self._restarts < _MOST_RESTARTS:
            self._restarts += 1
            # Anew, as the trace alone may have outlasted the warm-up.
            self._start_block(asked)

    def failed(self, error: BaseException) -> bool:
        """The arm's iterator, or the step on its batch, raised; returns whether that is dealt with.

        The step is then made with the pipeline as it is written. What a signal handler of the
        script's raises is the script's, and ends the trials.
        """
        if is_of_a_signal_handler(error):
            self.stop(_INTERRUPTED)
            return False
        if self._iterator is None or self._failure is not None:
            return False
        base, running = self._arms.base, self._running
        self._step_failed(error)
        self._hand_out(base.iterator() if base is not None else None)
        # A model that leaves layers to its pipeline takes no batch of the base: the error goes on
        # to where the script's own takes its place.
        return running is None or not running.moved

    def stop(self, reason: str) -> None:
        """The loop is over, by itself or by an error."""
        if not self.over:
            self._end()
            self._tell(TrialsOver(reason))

    # The conversation.

    def _converse(self) -> None:
        """Answer commands until one needs steps of the loop, or the parent asks no more."""
        # Nothing of an arm runs on while the parent decides.
        self._hand_out(None)
        try:
            self._answer()
        except BaseException as error:
            if is_of_a_signal_handler(error) or not isinstance(error, Exception):
                self.stop(_INTERRUPTED)
            raise

    def _answer(self) -> None:
        while not self.over:
            try:
                command = self._commands.next()
            except (UnknownCommandError, SilentParentError) as error:
                self.unheard = isinstance(error, SilentParentError)
                self.stop(str(error))
                return
            if command is None or isinstance(command, EndTrials):
                self._end()
                return
            try:
                if self._begin(command):
                    return
            except NotReplayableError as refusal:
                self._tell(ArmRefused(command.arm, str(refusal)))
            except Exception as error:
                let_pass(error)
                self._tell(ArmRefused(command.arm, _sentence(error)))

    def _begin(self, command: ArmCommand) -> bool:
        """Start on a command; returns whether it goes on with the loop's next steps."""
        match command:
            case Prepare():
                return self._prepare(command)
            case Pull(arm, seconds):
                self._pull_alone(arm, int(seconds * 1e9))
                return False
            case RunBlock():
                return self._run_block(command)

    def _prepare(self, command: Prepare) -> bool:
        self._same = self._arms.build(command.arm, command.changes, command.check, command.files)
        if self._consumer is None:
            self._tell(Prepared(command.arm, same_elements=self._same))
            return False
        if self._arms[command.arm].moved and self._consumer.hand_over == "next":
            raise NotReplayableError(_TAKES_ITS_BATCH_ITSELF)
        self._preparing = _PREPARED_AFTER
        self._start(command.arm)
        return True

    def _run_block(self, command: RunBlock) -> bool:
        if self._consumer is None:
            raise NotReplayableError("The loop is over, so nothing consumes its batches.")
        self._restarts = 0
        self._asked = command
        self._start_block(command)
        return True

    def _start_block(self, command: RunBlock) -> None:
        began_ns = time.monotonic_ns()
        arm = self._start(command.arm)
        settled_ns, wanted_ns = self._clock.settled_ns, int(command.seconds * 1e9)
        if command.epoch_examples is None:
            self._block = TimedBlock(began_ns, wanted_ns, settled_ns)
            return
        batches = math.ceil(command.epoch_examples / arm.rows)
        steps = max(1, batches // arm.batches_per_step)
        if command.runs_through:
            self._block = EpochWithin(steps, settled_ns)
        else:
            self._block = TimedBlock(began_ns, wanted_ns, settled_ns, max(1, steps - 1))

    def _start(self, name: str) -> Arm:
        arm, running = self._arms[name], self._running
        self._arm = name
        self._began_ns, self._first_ns = time.monotonic_ns(), None
        self._hand_out(None)
        self._model.use(arm.settings)
        self.skipped = arm.skipped
        self._running = arm
        # The step that is called already is another model's: it takes batches of that one's kind,
        # and as many of them.
        self._late = arm.settings != (running.settings if running is not None else {})
        if not self._late:
            self._hand_out(arm.iterator())
        elif running is not None:
            self._hand_out(running.iterator())
        return arm

    def _start_late(self) -> None:
        if self._asked is not None:
            self._start_block(self._asked)
        else:
            self._start(self._arm)

    def _step(self, now_ns: int, continuous: bool) -> bool:
        """Count a step; returns whether the command is done and answered."""
        if self._preparing:
            self._preparing -= 1
            if self._first_ns is None:
                self._first_ns = self._clock.settled_ns(now_ns) - self._began_ns
            if not self._preparing:
                self._tell(Prepared(self._arm, self._first_ns, self._same))
            return not self._preparing
        block = self._block
        if block is None or not block.step(now_ns, continuous):
            return False
        self._asked = self._block = None
        arm = self._arms[self._arm]
        batches = block.steps * arm.batches_per_step
        self._tell(
            BlockRun(
                self._arm,
                batches,
                batches * arm.rows,
                block.elapsed_ns,
                block.first_ns,
                arm.batches_per_step,
            )
        )
        return True

    def _pull_alone(self, name: str, wanted_ns: int) -> None:
        arm = self._arms[name]
        iterator = arm.iterator()
        warmup = Warmup(time.monotonic_ns())
        self._pull(iterator)
        while not warmup.step(time.monotonic_ns()):
            self._pull(iterator)
        measured = MeasuredSteps(wanted_ns, time.monotonic_ns())
        self._pull(iterator)
        while not measured.step(time.monotonic_ns(), continuous=True):
            self._pull(iterator)
        self._tell(BlockRun(name, measured.steps, measured.steps * arm.rows, measured.elapsed_ns))

    # The loop's iterator.

    def _adopt(self, consumer: Consumer) -> None:
        """A new epoch has an iterator of its own, in whose place the arm's goes on."""
        if consumer is not self._consumer:
            iterator = self._iterator
            self._hand_out(None)
            self._consumer = consumer
            self._hand_out(iterator)

    def _hand_out(self, iterator: Any) -> None:
        """Let an arm's iterator hand out batches; None for the script's own."""
        self._iterator = iterator
        if self._consumer is None:
            return
        if iterator is None:
            self._consumer.stand_in.give_back()
        else:
            self._consumer.stand_in.lend(iterator)

    def _step_failed(self, error: BaseException) -> None:
        # The first one says why: a model without some of its layers fails on the base's batch too.
        self._failure = self._failure or _sentence(error)
        self._preparing = 0
        self._running, self._late = None, False
        self._asked = self._block = None

    def _end(self) -> None:
        self.over = True
        self._hand_out(None)
        self._model.use({})
        self.skipped = ()
        self._arms.clear()


def _sentence(error: BaseException) -> str:
    """The first line of an error, for the report."""
    if is_end_of_data(error):
        return "The data came to its end: its source can't be read a second time."
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"It failed with {type(error).__name__}: {first[:300]}"
