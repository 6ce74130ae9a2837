"""What a trial compares, and what the process that can run it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipediag.session.edits import Change, Check


@dataclass(frozen=True)
class Arm:
    """A variant of the pipeline and the model: the base with changes, or without."""

    name: str
    changes: tuple[Change, ...] = ()
    check: Check | None = None
    runs_through: bool = False
    """Whether one iterator of it hands out all epochs, one behind the other."""


@dataclass(frozen=True)
class Block:
    """A stretch of steps with one arm alive, its warm-up left out."""

    examples: float
    batches: int
    elapsed_ns: int
    first_ns: int | None = None
    """Before those: from the arm's new iterator to the end of the step that waited for its first
    batch, where that is known."""
    first_batches: int = 1
    """How many that step took."""

    @property
    def examples_per_s(self) -> float:
        return self.examples / self.elapsed_ns * 1e9


@dataclass(frozen=True)
class Preparation:
    """What came of building an arm."""

    left_out: list[str]
    """What the arm leaves out, as sentences."""
    first_ns: int | None = None
    """From its new iterator to the end of its first step, in which its model was traced and
    compiled where that is another one; None where no step was made."""
    same_elements: int | None = None
    """How many elements were the same in two passes; None where that was not checked."""


class ArmRefusedError(Exception):
    """An arm can't be tried, or failed while it was; the training goes on. The reason is said."""


class ExecutorLostError(Exception):
    """The process that ran the trial is gone, hangs, or its loop has ended. The reason is said."""


class Executor(Protocol):
    """The process in which pipeline and model live. Every call waits for its answer."""

    def prepare(self, arm: Arm) -> Preparation:
        """Build an arm, check it, fill its caches, run its first steps.

        A cache is filled in whatever arm it stands, the base too, and whether it was written or
        added: otherwise blocks would compare filling with reading.

        Raises:
            ArmRefusedError: it can't be built, or the check failed.
            ExecutorLostError: the process is gone.
        """
        ...

    def block(self, arm: Arm, seconds: float, epoch_examples: float | None = None) -> Block:
        """Steps of the training loop with a fresh iterator of the arm, after a warm-up.

        With `epoch_examples` it goes no further than an epoch of so many. One that ends sooner is
        timed whole, without a warm-up.

        Raises:
            ArmRefusedError: the arm failed on the way.
            ExecutorLostError: the process is gone.
        """
        ...

    def pull(self, arm: Arm, seconds: float) -> Block:
        """Batches of a fresh iterator of the arm, taken as fast as they come, nothing else running.

        Raises:
            ArmRefusedError: the arm failed on the way.
            ExecutorLostError: the process is gone.
        """
        ...
