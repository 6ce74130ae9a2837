"""Requests of trials to the process that runs the script, and the events that they report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pipediag.session.edits import Change, Check
from pipediag.session.messages import BlockRun, Prepared, RunBlock

if TYPE_CHECKING:
    # The progress line needs this module before anything is measured: importing pydantic would
    # delay the script.
    from pipediag.session.trials import Trial


@dataclass(frozen=True)
class Variant:
    """The pipeline and the model as written, or with changes."""

    name: str
    changes: tuple[Change, ...] = ()
    check: Check | None = None


class VariantRefusedError(Exception):
    """A variant can't be tried, or failed while it ran; the training goes on."""


class ExecutorLostError(Exception):
    """The process that ran the trial is gone or hangs, or its loop has ended."""


class ScriptFinishedError(ExecutorLostError):
    """The script came to its end in a trial, which is no variant's fault."""


class Executor(Protocol):
    """The process in which pipeline and model live. Every call waits for its answer, and raises
    one of the errors above, whose message is the reason."""

    def prepare(self, variant: Variant) -> Prepared:
        """Build a variant, check it, fill its caches, also the script's own, and run its first
        steps. Blocks would compare filling with reading otherwise."""

    def run(self, command: RunBlock) -> BlockRun:
        """Run a block of a variant that was prepared; an epoch that ends sooner as a whole."""


@dataclass(frozen=True)
class Trying:
    """Event: a variant is built next, or a block of it is run."""

    label: str
    left_s: float
    """Time until the budget ends."""


@dataclass(frozen=True)
class Decided:
    """Event: an edit is decided, or was not tried."""

    label: str
    trial: Trial


TrialEvent = Trying | Decided
OnEvent = Callable[[TrialEvent], None]
