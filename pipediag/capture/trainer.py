"""What runs a training loop for the script, as Keras's `fit` does, as far as we ask it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol

from pipediag.capture.step_tables import KnownTable, Vocabulary
from pipediag.session.edits import SkipCallback
from pipediag.session.recorded_keras import RecordedKeras
from pipediag.vocabulary import LoopRole

Settings = dict[str, Any]
"""How a model is compiled, where that is not as the user compiled it."""


@dataclass
class TrainersPhase:
    """A method of the trainer's on the stack, with the frame that tells of its model."""

    role: LoopRole
    method: str
    frame: FrameType


class Variants(Protocol):
    """One model, compiled otherwise in the middle of its training, and back again."""

    def check(self, settings: Settings) -> None:
        """See whether it can be compiled so.

        Raises:
            NotReplayableError: it can't.
        """

    def use(self, settings: Settings) -> None:
        """Train with these settings from the next step on; none are the user's own."""

    def batches_per_step(self, settings: Settings, own: int) -> int:
        """Batches that one step takes, `own` without settings."""

    def on_elements(self, settings: Settings) -> Callable[..., Any] | None:
        """What the pipeline does in the model's place with these settings, as a function for its
        `map`; None where that is nothing."""


class Trainer(Protocol):
    """One framework's way to train for the script."""

    @property
    def name(self) -> str:
        """As the user knows it."""

    def phase_of(self, frames: Iterable[FrameType]) -> TrainersPhase | None:
        """What of it the frames (innermost first) run in, or None outside of it."""

    def passes_a_batch_on(self, frames: Iterable[FrameType]) -> bool:
        """Whether the iterator that the frames (innermost first) make is only how a batch of the
        script's gets to a step."""

    def fed_model(self, frames: Iterable[FrameType]) -> Any:
        """What is trained on a batch that the script has, by a method of the trainer's that the
        frames (innermost first) run in; None where that is none of its."""

    def data_walker(self, frame: FrameType) -> Any:
        """What walks over the data of a running `fit`, and of no other call; None if unknown."""

    def planned_steps(self, frame: FrameType) -> int | None:
        """Steps that a running `fit` was asked for; None where that is not known yet."""

    def batches_per_call(self, frame: FrameType) -> int:
        """Batches that each step of a running `fit` takes."""

    def model_of(self, frame: FrameType) -> Any:
        """What a running `fit` trains."""

    def callbacks_of(self, frame: FrameType) -> Any:
        """What a running `fit` calls beside its steps; None where that is not known."""

    def callbacks_named(self, callbacks: Any, skipped: Sequence[SkipCallback]) -> list[Any]:
        """Those of them that the changes name, which steps can be made without.

        Raises:
            NotReplayableError: there is none such, or it is not called where it could be left out.
        """

    def describe(self, frame: FrameType) -> RecordedKeras:
        """What a running `fit` tells, once a first step has built its model."""

    def known_tables(self, model: Any) -> list[KnownTable]:
        """The embedding tables of a model that was built."""

    def vocabularies(self, model: Any) -> list[Vocabulary]:
        """The tables of tokens in its layers."""

    def batch_size(self, frame: FrameType) -> int | None:
        """Rows of a batch, where a running `fit` knows them."""

    def variants(self, model: Any, failed: Callable[[BaseException], None]) -> Variants:
        """The model as it is; `failed` is told of an error in a step that is compiled otherwise."""
