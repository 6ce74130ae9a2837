"""Interfaces through which measuring and trying use a framework, and what they exchange.

`Runtime` runs the steps of a loop, `Trainer` runs a loop for the script as Keras's `fit` does, and
`StepTables` tells of the embedding tables that a step trains. Frameworks' hooks implement them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

from pipediag.session.edits import SkipCallback
from pipediag.session.recorded_loops import (
    KerasUse,
    RecordedTableUse,
    RecordedVariable,
    Softmax,
)
from pipediag.session.recording import ModelNode
from pipediag.vocabulary import LoopRole, Scalar


@dataclass(frozen=True)
class IteratorModel:
    """Model of a running pipeline.

    `gaps_us`: the consumer's time between requests, oldest first, the last 100 at most.
    """

    gaps_us: list[int]
    nodes: list[ModelNode]
    output_id: int


@dataclass(frozen=True)
class DatasetFacts:
    """Facts of a dataset when a loop over it is found."""

    element_spec: str
    replicas: int = 1
    root: Any = None
    """Its last operation, as the plan knows it; None if the plan does not know it."""
    options: Mapping[str, Scalar] = field(default_factory=dict)
    strategy: str | None = None
    """Class of what distributes it to its replicas."""


class Cancellation(Protocol):
    """Cancels one call, which has to be made inside `context`."""

    lack: str | None
    """Reason why the call can't be cancelled; None where it can."""
    started: bool
    context: AbstractContextManager[Any]

    def start(self) -> None: ...


class Clock(Protocol):
    """Tells when asynchronous work is done."""

    def settled_ns(self, now_ns: int) -> int:
        """Return when all work launched by now was done: `now_ns` if nothing is asynchronous."""


class Counter(Protocol):
    """Counts the steps of a loop that Python does not drive."""

    def read(self) -> int:
        """Return the steps so far; asked on another thread than the loop's."""


class Runtime(Protocol):
    """One framework's way to run steps. What is asked on every step is cheap."""

    def rows(self, batch: Any) -> int | None: ...

    def pull(self, iterator: Any) -> Any:
        """Return the next batch of an iterator, unseen by hooks.

        Raises an error for which `is_end_of_data` is true at the end of the data.
        """

    def repeated(self, batch: Any, element_spec: Any) -> Any:
        """Return an iterator that hands out `batch` for ever at next to no cost."""

    def handed_once(self, batches: Sequence[Any], element_spec: Any) -> Any:
        """Return an iterator that hands out `batches` and has no others."""

    def not_handed_once(self, iterator: Any, element_spec: Any, batches: int) -> str | None:
        """Return a sentence if so many batches of it can't be handed out by another iterator."""

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        """Return the embedding tables of steps that run these functions, or raise
        UnreadableStepError."""

    def unobserved(self, dataset: Any) -> Any:
        """Return an iterator over the dataset that hooks do not take for the script's."""

    def describe_dataset(self, dataset: Any) -> DatasetFacts: ...

    def model_of(self, iterator: Any) -> IteratorModel | None: ...

    @property
    def no_models(self) -> str | None:
        """Return a sentence if no pipeline of this runtime has a model."""

    def other_processes(self) -> str | None:
        """Return what shows that other processes take part in each step, if so."""

    def cancellation(self) -> Cancellation: ...

    def clock(self) -> Clock: ...


Settings = dict[str, Any]
"""Settings of `compile` that differ from the user's."""


@dataclass
class TrainersPhase:
    """A method of the trainer's on the stack, with the frame that tells of its model."""

    role: LoopRole
    method: str
    frame: FrameType


class Variants(Protocol):
    """One model, compiled otherwise in the middle of its training, and back again."""

    def check(self, settings: Settings) -> None:
        """Raise NotReplayableError if it can't be compiled so."""

    def use(self, settings: Settings) -> None:
        """Train with these settings from the next step on; none are the user's own."""

    def batches_per_step(self, settings: Settings, own: int) -> int:
        """Return the batches that one step takes, `own` without settings."""

    def on_elements(self, settings: Settings) -> Callable[..., Any] | None:
        """Return what the pipeline maps over elements in the model's place, if anything."""


class Trainer(Protocol):
    """One framework's way to train for the script; a frame is that of a running `fit`."""

    @property
    def name(self) -> str: ...

    def phase_of(self, frames: Iterable[FrameType]) -> TrainersPhase | None:
        """Return the method of the trainer that the frames run in; None outside of it."""

    def passes_a_batch_on(self, frames: Iterable[FrameType]) -> bool:
        """Return True if the frames make an iterator only to hand a batch of the script's on."""

    def fed_model(self, frames: Iterable[FrameType]) -> Any:
        """Return the model that the frames train on a batch of the script's, if they do."""

    def data_walker(self, frame: FrameType) -> Any:
        """Return what walks over the data of this `fit`, and of no other call."""

    def planned_steps(self, frame: FrameType) -> int | None: ...

    def batches_per_call(self, frame: FrameType) -> int: ...

    def model_of(self, frame: FrameType) -> Any: ...

    def callbacks_of(self, frame: FrameType) -> Any: ...

    def callbacks_named(self, callbacks: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
        """Return the callbacks that the changes name; raise NotReplayableError if steps can't be
        made without them."""

    def describe(self, frame: FrameType) -> KerasUse: ...

    def known_tables(self, model: Any) -> list[KnownTable]: ...

    def vocabularies(self, model: Any) -> list[Vocabulary]: ...

    def batch_size(self, frame: FrameType) -> int | None: ...

    def variants(self, model: Any, failed: Callable[[BaseException], None]) -> Variants:
        """Return a model's variants; `failed` is called with the error of a step of one."""


class UnreadableStepError(Exception):
    """A step, or the ids in it, can't be read; the text is a sentence."""


@dataclass(frozen=True)
class KnownTable:
    """A table of a model, and its record."""

    variable: Any
    record: RecordedVariable


@dataclass(frozen=True)
class Vocabulary:
    """A table of tokens in front of an embedding, which gives the ids."""

    handle: Any
    """Identity of the table in a traced step."""
    zero_is_a_token: bool
    """True if id 0 stands for a token, known or not, and not for padding."""


@dataclass(frozen=True)
class LookedUp:
    """The ids of one lookup in one batch, as NumPy has them."""

    ids: Any
    before: Any = None
    """The ids before they were cast to a float type; None where they are not."""


@dataclass(frozen=True)
class Passage:
    """Way of a table's ids from the batch to the lookup."""

    dtype: str
    """Their type in the batch."""
    through: str | None = None
    """The narrowest float type that they pass on their way."""
    vocabularies: tuple[Any, ...] = ()
    """Handles of the tables of tokens that give them."""


class StepTable(Protocol):
    """One table in a step."""

    variable: Any
    record: RecordedVariable
    """Record with what the variable itself tells."""
    use: RecordedTableUse
    softmax: Softmax | None
    """The loss that is taken over all of its rows, where it serves as output weights."""
    ids_missing: str | None
    """Reason why its ids can't be computed from a batch."""
    ids_incomplete: str | None
    """Reason why some of its lookups are not counted."""
    passage: Passage | None

    def answers(self, given: Any) -> bool:
        """Return True if its ids can be computed from this."""

    def looked_up(self, given: Any) -> list[LookedUp]:
        """Return the ids of a batch, lookup by lookup; `given` is what `StepTables` made of it."""


class StepTables(Protocol):
    """All tables of a step, each once, and the constants and losses in its graphs."""

    @property
    def tables(self) -> Sequence[StepTable]: ...

    @property
    def vocabulary_operations(self) -> Sequence[str]:
        """Return the names of operations that compute a number for each of many classes."""

    @property
    def softmaxes(self) -> Sequence[Softmax]:
        """Return the losses that are taken over all rows of a weight."""

    @property
    def constant_bytes(self) -> int: ...

    def draws_as_counted(self, batches_per_call: int) -> bool:
        """Return True if a call draws so many batches, all from the iterator that it is given."""

    def of_batch(self, batch: Any) -> Any:
        """Return what to compute ids from, where the step draws its batch itself.

        Raises UnreadableStepError if the step was not traced for such a batch.
        """

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """Return what to compute ids from, of a call with a batch; None if it is no step."""
