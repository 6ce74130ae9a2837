"""What the step of a loop tells of the embedding tables that it trains, as far as we ask it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipediag.session.recorded_tables import (
    RecordedSoftmax,
    RecordedTableUse,
    RecordedVariable,
)


class UnreadableStepError(Exception):
    """Why a step, or the ids in it, can't be read, as a sentence."""


@dataclass(frozen=True)
class KnownTable:
    """What a trainer knows of a table that its model has."""

    variable: Any
    record: RecordedVariable


@dataclass(frozen=True)
class Vocabulary:
    """A table of tokens in front of an embedding, which gives the ids."""

    handle: Any
    """By which a traced step knows it."""
    out_of_vocabulary: tuple[int, ...]
    """The ids of tokens that are not in it."""
    zero_is_a_token: bool
    """Whether id 0 stands for a token, known or not, and not for padding."""


class UntoldTokensError(Exception):
    """Why a pipeline does not tell which ids stand for unknown tokens, as a sentence."""


@dataclass(frozen=True)
class Tokens:
    """What a table of tokens in the pipeline makes of them."""

    out_of_vocabulary: frozenset[int]
    """The ids of tokens that are not in it, which no other token has."""
    zero_is_a_token: bool | None
    """As of `Vocabulary`; None where a token has that id which may stand for padding."""


@dataclass(frozen=True)
class LookedUp:
    """The ids of one lookup in one batch, as NumPy has them."""

    ids: Any
    before: Any = None
    """The same before they passed a float type; None where they pass none."""


@dataclass(frozen=True)
class KeptBatch:
    """One that a loop inside a function has kept, to be read beside it."""

    place: str
    """Name of the variable that keeps it, by which the loop's graph knows it."""
    number: int
    """Which of the loop's, from 1."""
    parts: list[Any]


@dataclass(frozen=True)
class Passage:
    """How the ids of a table come to it."""

    dtype: str
    """Their type in the batch, or where the step makes them."""
    through: str | None = None
    """The narrowest float type that they pass on their way."""
    vocabularies: tuple[Any, ...] = ()
    """Handles of the tables of tokens that give them."""
    parts: tuple[int, ...] = ()
    """Of each lookup, which of the batch's tensors has its ids as they are; empty where those of
    one come in another way."""


class StepTable(Protocol):
    """One table in a step."""

    variable: Any
    record: RecordedVariable
    """As the variable itself has it."""
    use: RecordedTableUse
    softmax: RecordedSoftmax | None
    """The loss that is taken over all of its rows, where it serves as output weights."""
    ids_missing: str | None
    """Why its ids can't be computed from a batch."""
    ids_incomplete: str | None
    """Why some of its lookups are not among those that are told."""
    passage: Passage | None

    def answers(self, given: Any) -> bool:
        """Whether its ids can be computed from this."""

    def looked_up(self, given: Any) -> list[LookedUp]:
        """The ids of a batch, lookup by lookup; `given` is what `StepTables` made of the batch."""


class EagerSteps(Protocol):
    """Steps whose operations Python runs one by one, as they run on the thread that asks."""

    def begin(self) -> None:
        """A step begins."""

    def end(self) -> None:
        """It is over, or left; what was begun nowhere ends without an effect."""

    def can_be_read(self) -> bool:
        """Whether the step that is over ran what the one before it ran, or else why it can't be
        read is known: between epochs lies what no step of the loop runs."""

    def read(self) -> StepTables:
        """The tables of the step that is over.

        Raises:
            UnreadableStepError: it tells nothing of them.
        """

    def given(self) -> Any:
        """What to compute the ids from of a later step that is over; None where it ran otherwise
        than the one that was read."""


class StepTables(Protocol):
    """All tables of a step."""

    @property
    def tables(self) -> Sequence[StepTable]:
        """Each once."""

    @property
    def vocabulary_operations(self) -> Sequence[str]:
        """Operations that compute a number for each of many classes, by name."""

    @property
    def softmaxes(self) -> Sequence[RecordedSoftmax]:
        """Of its losses, those that are taken over all rows of a weight."""

    @property
    def constant_bytes(self) -> int:
        """Of the constants in its graphs."""

    def draws_as_counted(self, *, batches_per_call: int, replicas: int, distributed: bool) -> bool:
        """Whether a call of a step that is given its iterator draws so many batches from it, of
        which each replica gets a part, and from no other one."""

    def of_batch(self, batch: Any) -> Any:
        """What to compute ids from, where the step draws its batch itself.

        Raises:
            UnreadableStepError: the batch is none that the step was traced for.
        """

    def of_kept(self, batches: Sequence[KeptBatch]) -> Any:
        """The same where a loop inside the step's function has kept them.

        Raises:
            UnreadableStepError: they are none of the loop's that the step was traced for.
        """

    def of_call(self, function: Any, args: Iterable[Any], kwargs: dict[str, Any]) -> Any:
        """The same where the step is given its batch; None where another function is called."""
