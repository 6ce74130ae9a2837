"""Messages between the two processes of an analysis, and of the timeline: one JSON object a line.

Plain dataclasses, because the user's process makes them too. Times are `time.monotonic_ns()`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

from pipediag.session.edits import Change, Check, changes_of
from pipediag.vocabulary import Call, OwnEnding, ScriptOutcome, WindowKind

SETTINGS_FILE = "settings.json"
RECORDING_FILE = "recording.json"
TIMELINE_FILE = "timeline.jsonl"
TRACE_DIRECTORY = "trace"


class WrittenFile:
    """Base of a dataclass that one process writes into a file for another."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self)), encoding="utf-8")

    @classmethod
    def read(cls: type[Written], path: Path) -> Written:
        return cls(**json.loads(path.read_text(encoding="utf-8")))


Written = TypeVar("Written", bound=WrittenFile)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Wishes of the user that the parent and the child go by."""

    steps: int | None = None
    """Baseline steps; None lets the window adapt to the step time."""
    loop: int | None = None
    """Line of the training loop that is wanted: no other one is measured, and none ends the run."""
    epochs: int | None = None
    """Epochs that the script would train, where it does not tell."""
    run_to_end: bool = False
    """Observe alone: nothing is tried in this run, whatever the budget."""
    device_memory_bytes: int | None = None
    """Memory of one device, against which embedding tables are planned; None plans none."""


@dataclass(frozen=True)
class RunSettings(RunOptions, WrittenFile):
    """Passed to the child as a JSON file. Paths are absolute: the script may change directory."""

    script: str
    """The script as typed: a path, or a module name where `module` is true."""
    args: Sequence[str]
    module: bool
    capture_directory: str
    """Directory in which the child writes its recording, `timeline.jsonl` and `trace/`."""
    progress_fd: int | None = None
    """A pipe on which the child tells its phases, one JSON object a line."""
    warmup: int | None = None
    profile_steps: int | None = None
    command_fd: int | None = None
    """A pipe on which the parent asks for trials; None where none are to be made."""
    look_ahead_s: float = 5.0
    """A diagnosed loop that would end within this time is let run on, so later loops are seen."""
    budget_s: float = 0.0
    """Seconds that the user gives for a closer look and for trials."""
    hold_loop: str | None = None
    """Loop, in a second run of a script: the one that waits for trials and ends it."""
    call: Call | None = None
    """The function of pipediag's that a program called; None where the command runs a script."""
    unblock_interrupts: bool = False
    """True if SIGINT is blocked until the script begins, and not blocked for the script."""
    safe_path: bool = False
    """True if the interpreter was asked (`-P`, `-I`) not to prepend the script's directory."""
    replaced_files: dict[str, str] | None = None
    """Files that are run in place of the script's, by the paths of these."""

    @property
    def input_only(self) -> bool:
        """Return True if nothing consumes the batches: the pipeline is measured alone."""
        return self.call == "analyze_input"

    @property
    def recording_path(self) -> Path:
        return Path(self.capture_directory) / RECORDING_FILE

    @property
    def timeline_path(self) -> Path:
        return Path(self.capture_directory) / TIMELINE_FILE

    @property
    def trace_directory(self) -> Path:
        return Path(self.capture_directory) / TRACE_DIRECTORY


@dataclass(frozen=True)
class ChildResult:
    """The end of a script's process, as the parent saw it."""

    outcome: ScriptOutcome
    script_status: int | None
    """The script's own status, negative for a signal; None where pipediag ended it."""
    detail: str | None
    started_ns: int
    ended_ns: int
    """Time at which the script's code was over, which may be before the process was."""
    held_ns: int | None = None
    """Start of the trials that it did not outlive."""


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
    """True if the loop is over, or can't be driven, so that only its pipeline can be tried."""
    more_to_come: bool
    """True if the script is let run on to later loops once this one was tried."""
    since_ns: int
    """Time at which its step time was known, later by what the script did between epochs since."""


@dataclass(frozen=True)
class Prepared:
    """The variant is built, and has made its first steps."""

    variant: str
    first_ns: int | None = field(default=None, compare=False)
    """Time from its new iterator to the end of its first step, tracing included."""
    same_elements: int | None = field(default=None, compare=False)
    """Number of elements that were the same in two passes; None where that was not checked."""


@dataclass(frozen=True)
class VariantRefused:
    """The variant can't be tried, or failed while it ran."""

    variant: str
    reason: str
    """A sentence."""


@dataclass(frozen=True)
class BlockRun:
    """Result of a block of steps, or of batches alone, without its warm-up."""

    variant: str
    batches: int
    examples: int
    elapsed_ns: int
    first_ns: int | None = None
    """Time from the variant's new iterator to the end of its first step; None of batches alone."""
    first_batches: int = 1
    """Number of batches that the first step took."""
    traces: int | None = None
    """Number of traces of the variant's `tf.function`, where that is what the variant changes."""
    freed_ns: int | None = None
    """Time that freeing this iterator took, after the block."""

    @property
    def examples_per_s(self) -> float:
        return self.examples / self.elapsed_ns * 1e9

    @property
    def step_ms(self) -> float:
        """Return the mean time per batch."""
        return self.elapsed_ns / 1e6 / self.batches


Answer = Prepared | VariantRefused | BlockRun
"""Answer to a command, one to each."""


@dataclass(frozen=True)
class TrialsOver:
    """The loop hears no more commands."""

    reason: str
    """The end of a sentence, without its full stop."""

    @property
    def is_end_of_script(self) -> bool:
        """Return True if the script came to its end, and did not fail."""
        return self.reason == "the script finished"


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
    """Build a variant, check it, and make its first steps."""

    variant: str
    changes: tuple[Change, ...]
    check: Check | None
    files: dict[str, str] = field(default_factory=dict)
    """Text of the files in which a change rewrites a call, as the patch would write them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", changes_of(self.changes))


@dataclass(frozen=True)
class RunBlock:
    """Run steps of the loop with a fresh iterator of this variant for so long, after a warm-up."""

    variant: str
    seconds: float
    alone: bool = False
    """True if its batches are taken as fast as they come instead."""
    epoch_examples: float | None = None
    """Examples in an epoch, where the block ends at the latest; None unless it counts whole."""


@dataclass(frozen=True)
class EndTrials:
    """End of the trials: no more is asked; the loop goes on by itself."""


Command = Prepare | RunBlock | EndTrials


# The wire.

Message = TypeVar("Message")


def kinds_of(union: Any) -> dict[str, type[Any]]:
    """Return the dataclasses of a union by their names, for `decode`."""
    return {kind.__name__: kind for kind in get_args(union)}


FROM_CHILD: Mapping[str, type[FromChild]] = kinds_of(FromChild)
COMMANDS: Mapping[str, type[Command]] = kinds_of(Command)


def encode(message: Any) -> bytes:
    """Return a dataclass as a line, in ASCII."""
    return json.dumps({"is": type(message).__name__, **asdict(message)}).encode() + b"\n"


def decode(line: bytes, kinds: Mapping[str, type[Message]]) -> Message | None:
    """Return the dataclass in a line; None where it is none of these kinds, or none at all."""
    try:
        fields = json.loads(line)
        return kinds[fields.pop("is")](**fields)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
