"""A loop of the script while it runs: its iterators, what stands in for them, and its times."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple

from pipediag.capture.callsites import Stacked, source_location
from pipediag.capture.guard import nothing
from pipediag.capture.runtime import Runtime, Trainer
from pipediag.session.recorded_loops import RecordedBoundary, RecordedLoop

# More tell nothing new, and all are written down again after each window.
_MOST_BOUNDARIES = 512


class Interruption(NamedTuple):
    """Something between two steps of a loop, so that no step lies there."""

    at_ns: int | None = None
    """Time at which it came; None before the first step, and where trials of ours came."""
    by_trials: bool = False


class Stage(Enum):
    """Compared with `is`: to hash an Enum runs Python code, at each step."""

    OWN = "the script's own iterator hands out"
    CATCHING = "it hands out a batch that will be repeated"
    READING = "it hands out a batch whose ids are read on its way"
    REPEATED = "that batch is handed out again and again"
    VARIANT = "a variant of a trial hands out"


def is_end_of_data(error: BaseException) -> bool:
    """Return True if the error says so, as TensorFlow's operations or as Python's iterators do."""
    # By name: the class is TensorFlow's, which the script may not have imported.
    return type(error).__name__ == "OutOfRangeError" or isinstance(error, StopIteration)


class ScriptsOwnError(Exception):
    """The script's data failed, which its call has to hear."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


HandOver = Literal["next", "call", "fed"]
"""Way in which batches leave an iterator: by Python's `next`, or inside a tf.function that was
given it; `fed`: Python feeds the step itself, without an iterator."""


MadeBy = frozenset[tuple[str, str | None, int | None]]
"""Calls that make a dataset: what each is, its file and its line."""


@dataclass
class Loop:
    record: RecordedLoop
    runtime: Runtime
    trainer: Trainer | None = None
    """Runs it for the script, as Keras does; None for a loop of the script's own."""
    fit_frame: Any = None
    fit_walker: weakref.ref[Any] | None = None
    """Keras's iterator over the data of its last `fit`; another `fit` has another one."""
    fits: int = 0
    """Number of its fits, with the last one."""
    fit_steps: int | None = None
    """Steps that its first `fit` was asked for, as far as Keras knew."""
    model: weakref.ref[Any] | None = None
    dataset: Any = None
    """Its dataset, kept from when it is diagnosed, to be tried with changes."""
    evaluated: weakref.ref[Any] | None = None
    """The dataset of its last evaluation, kept no longer than by the script."""
    step_functions: list[weakref.ref[Any]] = field(default_factory=list)
    consumers: int = 0
    made_by: set[MadeBy] = field(default_factory=set)
    """Calls that made the datasets of its iterators."""
    come_from: tuple[tuple[str, int], ...] = ()
    """Places of the script's calls on the stack when its first iterator was made."""
    fed_at: Stacked = field(default_factory=list)
    """The script's frames at a step that began the loop, or went on with it, if Python feeds it."""
    shares_rounds: bool = False
    """True if it has a part of the planned rounds of its line, and other loops have the rest."""
    saw_undisturbed_end: bool = False
    """True once an epoch ended that nothing of pipediag's made longer."""
    joined: list[Consumer] = field(default_factory=list)
    """Other iterators that each of its steps draws from."""
    thread: threading.Thread | None = None
    traced_in_first_step_ns: int = 0
    diagnosis: Any = None
    interruption: Interruption | None = field(default_factory=Interruption)
    """Interruption of its last step, set by the StepClock, and by trials when they end."""
    _first_step_of: RecordedBoundary | None = None

    @property
    def last_ns(self) -> int:
        return self.record.last_ns or 0

    def step_begins(
        self, now_ns: int, wait_ns: int | None, interruption: Interruption | None, *, counts: bool
    ) -> None:
        """Keep the times of a step; `wait_ns` is None where it asks for its batch itself."""
        record, asked_ns = self.record, now_ns - (wait_ns or 0)
        if counts:
            record.steps += record.batches_per_call
        if record.asked_ns is None or record.last_ns is None:
            record.asked_ns = asked_ns
        elif record.warm_ns is None:
            record.warm_ns = now_ns if interruption is None else None
        elif interruption is not None:
            self._goes_on(asked_ns, None if wait_ns is None else now_ns, interruption)
        else:
            boundary, self._first_step_of = self._first_step_of, None
            if boundary is not None:
                boundary.first_step_ns = now_ns - record.last_ns
        record.last_ns = now_ns

    def _goes_on(self, asked_ns: int, handed_ns: int | None, interruption: Interruption) -> None:
        record, self._first_step_of = self.record, None
        if interruption.at_ns is None:
            self.set_aside(asked_ns - self.last_ns)
            return
        if not self.trains or len(record.epoch_boundaries) == _MOST_BOUNDARIES:
            return
        boundary = RecordedBoundary(interruption.at_ns, asked_ns, handed_ns)
        record.epoch_boundaries.append(boundary)
        if handed_ns is None:
            self._first_step_of = boundary

    def traced(self) -> None:
        """Note that the running step traced a function: its time says nothing of a wait."""
        self._first_step_of = None

    def set_aside(self, ns: int) -> None:
        """Take so much time of ours out of the script's."""
        if self.record.warm_ns is not None:
            self.record.set_aside_ns += ns

    def count_fit(self, walker: Any) -> None:
        """Count the `fit` that has this iterator over its data, unless it is the last one."""
        if walker is not None and (self.fit_walker is None or self.fit_walker() is not walker):
            self.fits += 1
            self.fit_walker = weakref.ref(walker)

    def let_go(self) -> None:
        self.fit_frame = self.model = self.dataset = None
        self.joined.clear()

    def joins(self, consumer: Consumer) -> bool:
        """Draw from this iterator, too; return True if no epoch before has shown that."""
        if any(one is consumer for one in self.joined):
            return False
        if consumer.loop is self:
            self.record.iterators -= 1  # as of `zip`: its epochs are counted by one of them
        gone = [one for one in self.joined if one.iterator() is None]
        self.joined = [one for one in self.joined if one.iterator() is not None] + [consumer]
        return all(one.loop is not consumer.loop for one in gone)

    @property
    def fit_begun(self) -> bool:
        """Return True if it is a `fit`, of which none begins before the last one ends."""
        return self.record.kind == "keras" and self.trains

    def has_step(self, function: Any) -> bool:
        return any(ref() is function for ref in self.step_functions)

    def runs(self, function: Any) -> None:
        if not self.has_step(function):
            self.step_functions.append(weakref.ref(function))
            name = source_location(function)
            if name not in self.record.step_functions:
                self.record.step_functions.append(name)

    def runs_elsewhere(self) -> bool:
        thread = self.thread
        return thread is not None and thread.is_alive() and thread is not threading.current_thread()

    @property
    def trains(self) -> bool:
        return self.record.role == "training"

    @property
    def at_last_batch(self) -> bool:
        """Return True if it was just handed the last batch that it plans to take."""
        planned, steps = self._planned_steps, self.record.steps
        return planned is not None and 0 <= steps - planned < self.record.batches_per_call

    @property
    def steps_left(self) -> int | None:
        """Return the steps that it still has to take; None where nothing says so."""
        planned, record = self._planned_steps, self.record
        # More than planned: a loop of the script's own is come to from elsewhere as well.
        if planned is None or (record.kind != "keras" and record.steps > planned):
            return None
        return max(0, planned - record.steps)

    @property
    def _planned_steps(self) -> int | None:
        """Return the steps of its first `fit`, or of a loop of the script's own, where known.

        For data of unknown length the first epoch says how long it is.
        """
        record = self.record
        if record.planned_steps is not None:
            return record.planned_steps
        if record.kind == "keras":
            epoch, epochs = record.epoch_steps, record.keras.epochs if record.keras else None
            return epoch * epochs if epoch and epochs and epochs > 1 else None
        epoch = record.epoch_steps or (None if record.exceeds_data_steps else record.data_steps)
        return epoch * record.planned_rounds if epoch and record.planned_rounds else None

    @property
    def seconds_in_all(self) -> float | None:
        record, left = self.record, self.seconds_left
        return None if left is None else record.elapsed_ns / 1e9 + left

    @property
    def seconds_left(self) -> float | None:
        return self._seconds_of(self.steps_left)

    @property
    def seconds_left_in_epoch(self) -> float | None:
        """Return the time left in the epoch; None where it is unknown, and in the last one."""
        record, planned = self.record, self._planned_steps
        epochs = record.keras.epochs if record.keras is not None else record.planned_rounds
        if not planned or not epochs:
            return None
        each = planned / epochs
        if record.steps >= planned - each:
            return None
        # None are left behind an epoch's last step, until its end is seen.
        return self._seconds_of(-record.steps % each)

    def _seconds_of(self, steps: float | None) -> float | None:
        """Return how long so many would take, of a loop of the script's own with its pauses."""
        record = self.record
        if steps is None or record.steps == 0:
            return None
        seen_ns = record.elapsed_ns
        if record.kind != "keras" and record.asked_ns is not None:
            seen_ns = max(seen_ns, self.last_ns - record.asked_ns - record.set_aside_ns)
        return steps * seen_ns / record.steps / 1e9


@dataclass
class Consumer:
    """One iterator of a loop, or what feeds it without any."""

    loop: Loop
    ordinal: int
    iterator: Callable[[], Any] = nothing
    """Gives it as long as it is there; None afterwards, and where there is none."""
    left_ns: int | None = None
    """Time at which the script let go of it, as by `break`: what follows is no step of it."""
    element_spec: Any = None
    dataset: Any = None
    hand_over: HandOver = "next"
    batches: int = 0
    waited_ns: int = 0
    """Time in `next` since the last step began."""
    stage: Stage = Stage.OWN
    substitute: Any = None
    """The iterator that hands out batches in its place; None where it does so itself."""
    distributed: bool = False

    def hand_out(self, stage: Stage, substitute: Any = None) -> None:
        self.stage, self.substitute = stage, substitute

    def asked(self, own: Any) -> Any:
        return own if self.substitute is None else self.substitute

    def draw(self, iterator: Any) -> list[Any]:
        """Return the batch that a call would have drawn, if there is one. Raises ScriptsOwnError
        where that fails."""
        try:
            return [self.loop.runtime.pull(iterator)]
        except Exception as error:
            if not is_end_of_data(error):
                raise ScriptsOwnError(error) from error
            return []
