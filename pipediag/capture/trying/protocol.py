"""The trial protocol in a held loop: what the parent asks for is done between and in its steps.

The training loop itself is the consumer: a variant's iterator takes the place of the script's own.
The protocol is a generator, resumed at each step's end; a step that failed is thrown into it. Only
one variant is alive at a time, and each block starts with a fresh iterator. Of a loop that is over,
or that Python does not drive, the pipeline alone is tried.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pipediag.capture.link import CommandPipe, NoCommandError
from pipediag.capture.loops.loop import Consumer, Loop, Stage, is_end_of_data
from pipediag.capture.process import is_of_a_signal_handler, let_pass
from pipediag.capture.replay import NotReplayableError, first_line
from pipediag.capture.replay.changes import model_settings
from pipediag.capture.replay.elements import dataset_of, first_elements
from pipediag.capture.replay.rebuilding import (
    READING_LIMIT_S,
    Filled,
    built,
    rebuild,
    refuse_to_disturb,
    verify,
    without_caches,
)
from pipediag.capture.replay.replacing import Attribute, attributes_set, padding_cut
from pipediag.capture.replay.rewriting import other_code, refuse_running, traces, verify_code
from pipediag.capture.runtime import Settings
from pipediag.capture.trying.model_variants import ModelVariants
from pipediag.session.edits import (
    CUT_PADDING,
    Change,
    CompileFunction,
    Insert,
    RewriteCall,
    SetParameters,
)
from pipediag.session.messages import (
    Answer,
    BlockRun,
    EndTrials,
    FromChild,
    Prepare,
    Prepared,
    RunBlock,
    TrialsOver,
    VariantRefused,
)
from pipediag.vocabulary import BASE

NO_PIPELINE = "Python hands each step its batch, so there is no tf.data pipeline to try changes on."
_INTERRUPTED = "the script was interrupted in the middle of them"


class TrialsOfLoop:
    """Trials in one loop, on its training thread."""

    def __init__(
        self,
        loop: Loop,
        commands: CommandPipe,
        tell: Callable[[FromChild], None],
        over: Callable[[bool], None],
    ) -> None:
        """`over` is called when they are over, with True if the parent may still ask for what
        nobody waits for any more."""
        self.loop = loop
        self.traced = False
        """True if a function was traced in the step that is running."""
        self._over = False
        self._unheard = False
        self._commands = commands
        self._tell = tell
        model = loop.model() if loop.model is not None else None
        self._model = ModelVariants(model, self._step_failed)
        self._settled_ns = loop.runtime.settled_ns
        self._variants = Variants(loop, self._model, self._step_failed)
        self._running: Variant | None = None
        """The variant whose model makes the step that is called now; None for the script's own."""
        self._iterator: Any = None
        self._consumer: Consumer | None = None
        self._failure: str | None = None
        """Reason why the step that runs failed with the variant."""
        self._undo = ExitStack()
        self._undo.callback(lambda: over(self._unheard))
        self._undo.callback(self._variants.clear)
        self._undo.callback(self._model.use, {})
        self._undo.callback(self._hand_out, None)
        self._protocol = self._answer_all()

    # What the training thread reports.

    def begin(self, consumer: Consumer | None) -> None:
        """Let the parent ask until it needs steps of the loop; without a consumer, to the end."""
        if consumer is not None:
            self._adopt(consumer)
        self._resume(partial(next, self._protocol))

    def boundary(self, consumer: Consumer, now_ns: int, continuous: bool) -> None:
        self._adopt(consumer)
        failure, self._failure = self._failure, None
        traced, self.traced = self.traced, False
        if failure is not None:
            self._resume(partial(self._protocol.throw, NotReplayableError(failure)))
        else:
            self._resume(partial(self._protocol.send, Step(now_ns, continuous, traced)))

    def failed(self, error: BaseException) -> bool:
        """Note that the variant's iterator, or the step on its batch, raised; return True if a
        variant is to blame, so that the step is made with the pipeline as it is written.

        What a signal handler of the script's raises is the script's, and ends the trials.
        """
        if is_of_a_signal_handler(error):
            self.stop(_INTERRUPTED)
            return False
        if self._iterator is None or self._failure is not None:
            return False
        base = self._variants.built.get(BASE)
        self._step_failed(error)
        self._hand_out(self._variants.iterator(base) if base is not None else None)
        return True

    def stop(self, reason: str) -> None:
        """End the trials, as the loop is over by itself or by an error."""
        if not self._over:
            self._end()
            self._tell(TrialsOver(reason))

    # The protocol.

    def _answer_all(self) -> Steps[None]:
        while True:
            self._hand_out(None)  # nothing of a variant runs on while the parent decides
            command = self._commands.next()
            if command is None or isinstance(command, EndTrials):
                return
            answer: Answer
            try:
                if isinstance(command, Prepare):
                    answer = yield from self._prepare(command)
                elif command.alone:
                    answer = self._pull_alone(command)
                else:
                    answer = yield from self._run_block(command)
            except NotReplayableError as refusal:
                answer = VariantRefused(command.variant, str(refusal))
            except Exception as error:
                let_pass(error)
                answer = VariantRefused(command.variant, _sentence(error))
            self._tell(answer)

    def _prepare(self, command: Prepare) -> Steps[Prepared]:
        same = self._variants.build(command)
        if self._consumer is None:
            return Prepared(command.variant, same_elements=same)
        variant = self._variants.built[command.variant]
        yield from self._switch_to(variant)
        began_ns = self._give_iterator(variant)
        first = yield
        first_ns = self._settled_ns(first.now_ns) - began_ns
        yield
        return Prepared(command.variant, first_ns, same)

    def _run_block(self, command: RunBlock) -> Steps[BlockRun]:
        if self._consumer is None:
            raise NotReplayableError("The loop is over, so nothing consumes its batches.")
        variant, settled_ns = self._variants.built[command.variant], self._settled_ns
        behind = None
        if command.epoch_examples is not None:
            in_epoch = math.ceil(command.epoch_examples / variant.rows)
            behind = max(1, in_epoch // variant.batches_per_step - 1)
        yield from self._switch_to(variant)
        begin, wanted_ns = partial(self._give_iterator, variant), int(command.seconds * 1e9)
        block = yield from timed(begin, wanted_ns, settled_ns, behind)
        ended_ns, batches = time.monotonic_ns(), block.steps * variant.batches_per_step
        self._hand_out(None)
        return BlockRun(
            command.variant,
            batches,
            batches * variant.rows,
            block.elapsed_ns,
            block.first_ns,
            variant.batches_per_step,
            traces(variant.code),
            time.monotonic_ns() - ended_ns,
        )

    def _switch_to(self, variant: Variant) -> Steps[None]:
        former, self._running = self._running, variant
        self._model.use(variant.settings)
        if variant.settings != (former.settings if former is not None else {}):
            # The step that is called already is another model's: it takes batches of that one's
            # kind, and as many of them.
            if former is not None:
                self._hand_out(self._variants.iterator(former))
            yield

    def _give_iterator(self, variant: Variant) -> int:
        self._hand_out(None)
        began_ns = time.monotonic_ns()
        self._hand_out(self._variants.iterator(variant))
        return began_ns

    def _pull_alone(self, command: RunBlock) -> BlockRun:
        variant = self._variants.built[command.variant]
        if variant.dataset is None:
            raise NotReplayableError(NO_PIPELINE)
        iterator = self._variants.iterator(variant)
        block = timed(time.monotonic_ns, int(command.seconds * 1e9), lambda now_ns: now_ns)
        next(block)
        while True:
            self.loop.runtime.pull(iterator)
            try:
                block.send(Step(time.monotonic_ns()))
            except StopIteration as over:
                taken, elapsed_ns = over.value.steps, over.value.elapsed_ns
                return BlockRun(command.variant, taken, taken * variant.rows, elapsed_ns)

    # What it rests on.

    def _resume(self, resume: Callable[[], None]) -> None:
        try:
            resume()
        except StopIteration:
            self._end()
        except NoCommandError as error:
            self._unheard = True
            self.stop(str(error))
        except BaseException as error:
            if is_of_a_signal_handler(error) or not isinstance(error, Exception):
                self.stop(_INTERRUPTED)
            raise

    def _adopt(self, consumer: Consumer) -> None:
        """Let the variant go on in the place of a new epoch's iterator."""
        if consumer is not self._consumer:
            iterator = self._iterator
            self._hand_out(None)
            self._consumer = consumer
            self._hand_out(iterator)

    def _hand_out(self, iterator: Any) -> None:
        """Let a variant's iterator hand out batches; None for the script's own."""
        self._iterator = iterator
        if self._consumer is not None:
            self._consumer.hand_out(Stage.OWN if iterator is None else Stage.VARIANT, iterator)

    def _step_failed(self, error: BaseException) -> None:
        self._failure = self._failure or _sentence(error)
        self._running = None

    def _end(self) -> None:
        self._over = True
        self._undo.close()


def _sentence(error: BaseException) -> str:
    # A StopIteration that leaves a generator, such as the protocol's, is a RuntimeError.
    if is_end_of_data(error) or isinstance(error.__cause__, StopIteration):
        return "The data came to its end: its source can't be read a second time."
    return f"It failed with {first_line(error)[:300]}"


# Variants: the loop's pipeline, and the model that it trains, each with some changes.

_CHECKED_BATCHES = 2


@dataclass(frozen=True)
class Variant:
    """A variant that can hand out batches, or leaves that to the script's own Python."""

    dataset: Any
    """None where Python hands each step its batch."""
    settings: Settings
    """Settings with which the model is compiled, where they differ from the user's."""
    rows: int
    batches_per_step: int
    code: list[Attribute]
    """Code that the script's functions run for it."""


class Variants:
    """Variants of one loop, by name."""

    def __init__(
        self, loop: Loop, model: ModelVariants, step_failed: Callable[[BaseException], None]
    ) -> None:
        self._loop = loop
        self._step_failed = step_failed
        self._dataset = getattr(loop.dataset, "_original_dataset", loop.dataset)
        self._model = model
        self._filled: Filled = {}
        self.built: dict[str, Variant] = {}
        self._patched = ExitStack()
        """Lets the script's functions run their own code again."""

    def build(self, asked: Prepare) -> int | None:
        """Make it ready to hand out batches, and compare its elements where a check is asked for.

        Returns how many elements were the same in two passes, where that is checked. Raises
        NotReplayableError where it can't be made, or not without changing what the script does.
        """
        self._patched.close()
        code = other_code(asked.changes, asked.files, self._step_failed)
        of_code = RewriteCall | CompileFunction
        changes = [change for change in asked.changes if not isinstance(change, of_code)]
        if self._loop.record.from_python:
            if changes:
                raise NotReplayableError(NO_PIPELINE)
            refuse_running(code)
            size = self._loop.record.batch_size or 1
            self.built[asked.variant] = Variant(None, {}, size, 1, code)
            return None
        verify_code(self._dataset, asked.changes, code)
        settings: Settings = model_settings(changes)
        self._model.check(settings)
        same = None
        if asked.check == "outputs":
            self._verify_outputs(changes)
        elif asked.check is not None:
            same = verify(self._dataset, changes, asked.check)
        runtime = self._loop.runtime
        with attributes_set(*code):
            # Endless, as blocks don't end where the elements do.
            dataset = rebuild(self._dataset, changes, endless=True, filled=self._filled)
            first = runtime.pull(runtime.unobserved(dataset))
        rows = self._rows(changes, first)
        batches = settings.get("steps_per_execution") or self._loop.record.batches_per_call
        self.built[asked.variant] = Variant(dataset, settings, rows, batches, code)
        return same

    def _rows(self, changes: Sequence[Change], first: Any) -> int:
        """Return the rows of a full batch: those of the first one say little, as it may be the last
        and smaller batch of the data where batches are shuffled."""
        for change in changes:
            size = isinstance(change, SetParameters) and change.parameters.get("batch_size")
            if not size:
                continue
            if self._loop.record.kind != "keras":
                raise NotReplayableError(
                    "The loop is the script's own code, which may rely on the size of its batches."
                )
            return int(size)
        if base := self.built.get(BASE):
            return base.rows
        return self._loop.record.batch_size or self._loop.runtime.rows(first) or 1

    def _verify_outputs(self, changes: Sequence[Change]) -> None:
        plain = without_caches(self._dataset)  # which the script may be filling
        refuse_to_disturb(plain)
        read = first_elements(built(plain), _CHECKED_BATCHES, READING_LIMIT_S).elements
        fixed = dataset_of(read, self._dataset.element_spec)
        cuts = (one for one in changes if isinstance(one, Insert) and one.kind == CUT_PADDING)
        parameters: dict[str, Any] = next((one.parameters for one in cuts), {})
        changed = first_elements(padding_cut([fixed], **parameters), len(read)).elements
        cut = importlib.import_module("pipediag.in_chunks").cut_padding
        self._model.same_outputs(read, changed, partial(cut, **parameters))

    def iterator(self, variant: Variant) -> Any:
        """Return a fresh iterator, which the hooks take for none of the script's; the script's
        functions run the variant's code from here on."""
        self._patched.close()
        self._patched.enter_context(attributes_set(*variant.code))
        dataset = variant.dataset
        return self._loop.runtime.unobserved(dataset) if dataset is not None else None

    def clear(self) -> None:
        self._patched.close()
        self.built.clear()
        self._filled.clear()


# Blocks of steps of one variant: a warm-up, then what is measured. Counts and times alone.

_SECOND = 1_000_000_000
_WARM_NS = 3 * _SECOND // 10
_WARM_STEPS = 3
_LONG_WARM_NS = 2 * _SECOND
_FEWEST_STEPS = 5
_LONG_NS = 3 * _SECOND
_FEWEST_LONG_STEPS = 2
_MOST_RESTARTS = 3

Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """A step that ended; `continuous` if nothing else came between its begin and its end."""

    now_ns: int
    continuous: bool = True
    traced: bool = False
    """True if a function was traced in it."""


Steps = Generator[None, Step, Result]
"""Resumed with each step."""


@dataclass(frozen=True)
class Timed:
    """Steps that count, and what the first one of the block took, its wait included."""

    steps: int
    elapsed_ns: int
    first_ns: int


def timed(
    begin: Callable[[], int],
    wanted_ns: int,
    settled_ns: Callable[[int], int],
    epoch_steps: int | None = None,
    restarts: int = _MOST_RESTARTS,
) -> Steps[Timed]:
    """Time steps from a fresh iterator on: the one that waits for the first batch, then others.

    Steps of an epoch that is over before there are enough of them are counted from that first step
    on, all of them: that is the epoch as it is. A longer epoch has a warm-up, as any block has.

    `begin` makes the iterator, and returns when that began; `settled_ns` returns when an
    accelerator is through with the step that ended then. The block does not go beyond `epoch_steps`
    behind the first one. It begins anew, a few times at most, where a step of the warm-up traces a
    function: meanwhile the pipeline fills its buffers.
    """
    began_ns = begin()
    step = yield
    since_ns = settled_ns(step.now_ns)
    first_ns = since_ns - began_ns
    # However long the wait was: in an epoch, buffers are to fill behind it.
    warm, warm_from_ns = (1, began_ns) if epoch_steps is None else (0, since_ns)
    last_ns: int | None = None
    behind = steps = elapsed_ns = 0
    while True:
        if last_ns is None:
            if step.traced and restarts:
                again = timed(begin, wanted_ns, settled_ns, epoch_steps, restarts - 1)
                return (yield from again)
            if _is_warm(warm + behind, step.now_ns - warm_from_ns):
                last_ns = settled_ns(step.now_ns)
        else:
            if step.continuous:
                steps, elapsed_ns = steps + 1, elapsed_ns + step.now_ns - last_ns
            last_ns = step.now_ns
            if _is_enough(steps, elapsed_ns, wanted_ns):
                return Timed(steps, elapsed_ns + settled_ns(last_ns) - last_ns, first_ns)
        if behind == epoch_steps:
            return Timed(behind, settled_ns(step.now_ns) - since_ns, first_ns)
        step = yield
        behind += 1


def _is_warm(steps: int, elapsed_ns: int) -> bool:
    """Return True once fresh buffers are full and autotune has found its settings."""
    return (steps >= _WARM_STEPS and elapsed_ns >= _WARM_NS) or elapsed_ns >= _LONG_WARM_NS


def _is_enough(steps: int, elapsed_ns: int, wanted_ns: int) -> bool:
    least_ns = wanted_ns if steps >= _FEWEST_STEPS else max(_LONG_NS, wanted_ns)
    return steps >= _FEWEST_LONG_STEPS and elapsed_ns >= least_ns
