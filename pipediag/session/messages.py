"""What the two processes of an analysis say to each other: one JSON object a line.

Plain dataclasses, because the user's process makes them too, where nothing may be imported that
the script would not have imported. Times are `time.monotonic_ns()`, one clock for both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar, get_args

from pipediag.session.edits import Change, Check, changes_from_json
from pipediag.vocabulary import OwnEnding, WindowKind

# What the child tells.


@dataclass(frozen=True)
class Started:
    """The script's first line comes next."""


@dataclass(frozen=True)
class Refused:
    """The interpreter found no such module to run."""

    message: str


@dataclass(frozen=True)
class LoopFound:
    """A training loop is watched from here on."""

    line: int | None


@dataclass(frozen=True)
class WindowBegun:
    """The loop's steps are looked at in another way from here on."""

    window: WindowKind


@dataclass(frozen=True)
class LoopMeasured:
    """The last window of a loop is over."""

    line: int | None


@dataclass(frozen=True)
class TrialsAwaited:
    """A measured loop waits for commands."""

    loop_id: str
    alone: bool
    """Whether the loop is over, or can't be driven, so that only its pipeline can be tried."""
    more_to_come: bool
    """Whether the script is let run on to later loops once this one was tried."""
    since_ns: int
    """When the loop's step time was known and pipediag began to look closer."""
    since_ms: float | None = None
    """The same by the clock of windows and steps, which starts with the recording."""


@dataclass(frozen=True)
class Prepared:
    """The arm is built, and has made its first steps."""

    arm: str
    first_ns: int | None = field(default=None, compare=False)
    """From its new iterator to the end of its first step, in which its model is traced and compiled
    where that is another one; None of batches alone. It makes no other answer of it."""
    same_elements: int | None = field(default=None, compare=False)
    """How many elements were the same in two passes; None where that was not checked."""


@dataclass(frozen=True)
class ArmRefused:
    """The arm can't be tried, or failed on the way."""

    arm: str
    reason: str
    """A sentence."""


@dataclass(frozen=True)
class BlockRun:
    """What a stretch of steps, or of batches alone, came to, its warm-up left out."""

    arm: str
    batches: int
    examples: int
    elapsed_ns: int
    first_ns: int | None = None
    """From the arm's new iterator to the end of the step that waited for its first batch; None of
    batches alone."""
    first_batches: int = 1
    """How many that step took."""


Answer = Prepared | ArmRefused | BlockRun
"""To a command, one to each."""


@dataclass(frozen=True)
class TrialsOver:
    """The loop hears no more commands."""

    reason: str
    """The end of a sentence, without its full stop."""


@dataclass(frozen=True)
class Stopping:
    """The script is being stopped, and what follows is code of its own."""


@dataclass(frozen=True)
class NotSaved:
    """The last recording could not be written."""

    message: str


@dataclass(frozen=True)
class Ended:
    """The script's last line has run."""

    outcome: OwnEnding
    status: int | None
    """Its own, negative for a signal; None where pipediag ended it."""
    error: str | None = None


@dataclass(frozen=True)
class Closing:
    """The script's exit handlers are through."""


@dataclass(frozen=True)
class Leaving:
    """Nothing of the script is left to run."""


FromChild = (
    Started
    | Refused
    | LoopFound
    | WindowBegun
    | LoopMeasured
    | TrialsAwaited
    | Answer
    | TrialsOver
    | Stopping
    | NotSaved
    | Ended
    | Closing
    | Leaving
)

# What the parent asks of a loop that waits.


@dataclass(frozen=True)
class Prepare:
    """Build an arm, check it, and make its first steps."""

    arm: str
    changes: tuple[Change, ...]
    check: Check | None
    files: dict[str, str] = field(default_factory=dict)
    """Text of the files in which a change rewrites a call, as the patch would write them."""


@dataclass(frozen=True)
class RunBlock:
    """Run steps of the loop with this arm for so long, after a warm-up."""

    arm: str
    seconds: float
    epoch_examples: float | None = None
    """Where a whole epoch counts: how many it has, beyond which the block does not go."""
    runs_through: bool = False
    """Whether the arm's iterator hands out the next epoch behind this one: of such the block is as
    many steps as one has, from the second on, so that an end is among them."""


@dataclass(frozen=True)
class Pull:
    """Take batches of this arm as fast as they come for so long, after a warm-up."""

    arm: str
    seconds: float


@dataclass(frozen=True)
class EndTrials:
    """No more is asked; the loop goes on by itself."""


ArmCommand = Prepare | RunBlock | Pull
Command = ArmCommand | EndTrials


# The wire.

Message = TypeVar("Message")


def _prepare(
    arm: str, changes: list[dict[str, Any]], check: Check | None, files: dict[str, str]
) -> Prepare:
    return Prepare(arm, changes_from_json(changes), check, files)


FROM_CHILD: dict[str, Callable[..., FromChild]] = {
    kind.__name__: kind for kind in get_args(FromChild)
}
COMMANDS: dict[str, Callable[..., Command]] = {
    **{kind.__name__: kind for kind in get_args(Command)},
    Prepare.__name__: _prepare,
}


def encode(message: FromChild | Command) -> bytes:
    """The message as a line, in ASCII."""
    return json.dumps({"is": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes, kinds: Mapping[str, Callable[..., Message]]) -> Message | None:
    """The message in a line; None where it is none of these kinds, or none at all."""
    try:
        fields = json.loads(line)
        return kinds[fields.pop("is")](**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
