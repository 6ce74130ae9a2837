"""What runs the steps of a loop, and what it runs them on, as far as measuring and trying ask it.

Each loop has one, which its framework's hooks give it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipediag.capture.step_tables import EagerSteps, KeptBatch, StepTables, Tokens
from pipediag.session.recorded_model import ModelNode
from pipediag.vocabulary import Scalar


@dataclass(frozen=True)
class IteratorModel:
    """What a pipeline tells of itself while it runs.

    `gaps_us`: the consumer's time between requests, oldest first, the last 100 at most.
    """

    gaps_us: list[int]
    nodes: list[ModelNode]
    output_id: int


@dataclass(frozen=True)
class DatasetFacts:
    """What a dataset tells of itself when a loop over it is found."""

    element_spec: str
    replicas: int = 1
    root: Any = None
    """Its last operation, as the plan knows it; None where it is none of a plan's."""
    options: Mapping[str, Scalar] = field(default_factory=dict)
    strategy: str | None = None
    """Class of what distributes it to its replicas."""


class Cancellation(Protocol):
    """Of one call, which has to be made inside `context`."""

    lack: str | None
    """Why the call can't be cancelled; None where it can."""
    started: bool
    context: AbstractContextManager[Any]

    def start(self) -> None:
        """Cancel the call."""


class Clock(Protocol):
    """Says when work is done that runs behind Python's back."""

    def settled_ns(self, now_ns: int) -> int:
        """When all that was launched by now was done: `now_ns` where nothing runs behind it."""


class Counter(Protocol):
    """Counts the steps of a loop that Python does not drive."""

    def read(self) -> int:
        """Steps so far; asked on another thread than that of the loop."""


class Keeper(Protocol):
    """Keeps the batch that such a loop is at."""

    def read(self) -> KeptBatch | None:
        """The batch of the step that runs, or ran last; asked on another thread, too."""

    def empty(self) -> None:
        """Let that batch go; a step that runs from now on keeps its own again."""


class PipelineTokens(Protocol):
    """The tables of tokens in one pipeline."""

    def behind(self, part: int) -> Tokens | None:
        """What one makes in a part of the dataset's elements, given by its place among their
        tensors; None where none makes it. A table behind several parts is read once.

        Raises:
            UntoldTokensError: that can't be told.
        """


class Runtime(Protocol):
    """One framework's way to run steps. What is asked on every step is cheap."""

    def rows(self, batch: Any) -> int | None:
        """Rows of a batch, or None where it does not say."""

    def pull(self, iterator: Any) -> Any:
        """The next batch of an iterator, of which no hook is told.

        Raises:
            Exception: the data are at their end; see `loops.end_of_data`.
        """

    def repeated(self, batch: Any, element_spec: Any) -> Any:
        """An iterator that hands out `batch` for ever at next to no cost."""

    def handed_once(self, batches: Sequence[Any], iterator: Any, element_spec: Any) -> Any:
        """One in the place of `iterator` that hands out `batches` and has no others."""

    def not_handed_once(self, iterator: Any, element_spec: Any, batches: int) -> str | None:
        """Why so many batches of it could not be handed out by another, as a sentence."""

    def step_tables(self, functions: Sequence[Any]) -> StepTables:
        """The embedding tables of steps that run these functions.

        Raises:
            UnreadableStepError: they tell nothing of them.
        """

    def pipeline_tokens(self, dataset: Any) -> PipelineTokens:
        """What its tables of tokens make; it holds what was read of them."""

    def eager_steps(self) -> EagerSteps | None:
        """For steps that no function runs, which have to be listened to; None where they can't."""

    def unobserved(self, dataset: Any) -> Any:
        """An iterator over the dataset that hooks take for none of the script's."""

    def describe_dataset(self, dataset: Any) -> DatasetFacts:
        """What it tells of itself."""

    def model_of(self, iterator: Any) -> IteratorModel | None:
        """What the running pipeline tells of itself, where it does."""

    @property
    def no_models(self) -> str | None:
        """A sentence where no pipeline of this runtime tells anything while it runs."""

    def other_processes(self) -> str | None:
        """What tells that processes beside this one take part in each step; None where none do."""

    def cancellation(self) -> Cancellation:
        """For the next call of a function."""

    def clock(self) -> Clock:
        """For the devices that it has now."""
