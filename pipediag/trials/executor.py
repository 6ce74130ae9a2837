"""Requests of trials to the process that runs the script, and the events that they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipediag.session.edits import Change, Check

if TYPE_CHECKING:
    # The progress line needs this module before anything is measured: importing pydantic would
    # delay the script.
    from pipediag.session.record import Interval
    from pipediag.session.trials import Basis
    from pipediag.vocabulary import TrialState


@dataclass(frozen=True)
class Variant:
    """The pipeline and the model as written, or with changes."""

    name: str
    changes: tuple[Change, ...] = ()
    check: Check | None = None
    runs_through: bool = False
    """True if one iterator of it hands out all epochs, one after the other."""


@dataclass(frozen=True)
class Block:
    """Consecutive steps of one variant, without those of its warm-up."""

    examples: float
    batches: int
    elapsed_ns: int
    first_ns: int | None = None
    """From the variant's new iterator to the end of the step that waited for its first batch;
    None where that is not known."""
    first_batches: int = 1
    """Number of batches that this step took."""
    traces: int | None = None
    """Number of traces that the variant's `tf.function` has, if the variant changes its tracing."""

    @property
    def examples_per_s(self) -> float:
        return self.examples / self.elapsed_ns * 1e9

    @property
    def step_ms(self) -> float:
        """Return the mean time per batch."""
        return self.elapsed_ns / 1e6 / self.batches


@dataclass(frozen=True)
class Preparation:
    """Result of building a variant."""

    left_out: list[str]
    """What the variant leaves out, as sentences."""
    first_ns: int | None = None
    """From its new iterator to the end of its first step, in which a changed model is traced and
    compiled; None where no step was made."""
    same_elements: int | None = None
    """Number of elements that were the same in two passes; None where that was not checked."""


class VariantRefusedError(Exception):
    """A variant can't be tried, or failed while it ran; the training goes on."""


class ExecutorLostError(Exception):
    """The process that ran the trial is gone or hangs, or its loop has ended."""


class Executor(Protocol):
    """The process in which pipeline and model live. Every call waits for its answer.

    Every call raises VariantRefusedError where the variant failed, and ExecutorLostError where the
    process is gone; the message is the reason.
    """

    def prepare(self, variant: Variant) -> Preparation:
        """Build a variant, check it, fill its caches and run its first steps.

        Every cache is filled, also one that the script has: otherwise blocks would compare filling
        with reading.
        """
        ...

    def block(self, variant: Variant, seconds: float, epoch_examples: float | None = None) -> Block:
        """Run steps of the training loop with a fresh iterator of the variant, after a warm-up.

        With `epoch_examples` the block ends with an epoch of that many examples. An epoch that ends
        sooner is timed as a whole, without a warm-up.
        """
        ...

    def pull(self, variant: Variant, seconds: float) -> Block:
        """Take batches of a fresh iterator of the variant as fast as possible, without steps."""
        ...


@dataclass(frozen=True)
class Trying:
    """A variant is built next, or a block of it is run."""

    label: str
    left_s: float
    """Time until the budget ends."""


@dataclass(frozen=True)
class Decided:
    """An edit is decided. Figures are None where it was not tried or has too few rounds."""

    edit: str
    label: str
    state: TrialState
    speedup: float | None
    ci95: Interval | None
    basis: Basis | None


TrialEvent = Trying | Decided
OnEvent = Callable[[TrialEvent], None]
