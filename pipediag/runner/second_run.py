"""A script that was over too soon, run once more: its loop is held, edits are tried, it is stopped.

Nothing is measured again: session and edits are those of the first run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pipediag.errors import PipediagError
from pipediag.facts.script import edits_for_second_run
from pipediag.interrupts import INTERRUPTS
from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import ChildResult, supervise
from pipediag.runner.progress import OnProgress, RunsAgain
from pipediag.runner.trials_of_run import TrialsOfRun
from pipediag.session.messages import Answer, Command, Prepare, RunSettings, TrialsAwaited
from pipediag.session.model import Session
from pipediag.session.reading import read_recording
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.trials.schedule import TrialOutcome
from pipediag.vocabulary import BY_ITSELF

Ids = Mapping[str, str]
"""From the ids of the first run to those of the second."""


class BehavedOtherwiseError(Exception):
    """The second run is not like the first; the message is the end of a sentence."""


def same_operations(first: Recording, second: Recording, loop_id: str) -> Ids:
    """Return the ids of all operations that the loop reads from, matched by kind and place.

    Raises:
        BehavedOtherwiseError: the loop of that id is another one, or reads from other operations.
    """
    one, other = _loop(first, loop_id), _loop(second, loop_id)
    if _place(one) != _place(other):
        raise BehavedOtherwiseError(
            f"the loop in {_place_of(other)} came where the one in {_place_of(one)} had been"
        )
    known, found = _with_sources(first), _with_sources(second)
    ids: dict[str, str] = {}
    pending = [(one.root_op_id, other.root_op_id)]
    while pending:
        pair = pending.pop()
        if pair == (None, None) or pair[0] in ids:
            continue
        before, after = known.get(str(pair[0])), found.get(str(pair[1]))
        if before is None or after is None or _place(before[0]) != _place(after[0]):
            raise BehavedOtherwiseError("its loop read from another pipeline")
        if len(before[1]) != len(after[1]):
            raise BehavedOtherwiseError("its loop read from another pipeline")
        ids[before[0].id] = after[0].id
        pending += zip(before[1], after[1], strict=True)
    return ids


def _with_sources(recording: Recording) -> dict[str, tuple[RecordedOperation, list[str]]]:
    """Return each operation by its id, with the ids of those that it takes elements from."""
    found = {one.id: (one, list(one.parent_ids)) for one in recording.operations}
    for operation in recording.operations:
        if operation.inside_function_of in found:
            found[operation.inside_function_of][1].append(operation.id)
    return found


def asked_by_new_ids(ask: Ask, ids: Ids) -> Ask:
    """Asks for arms by the ids of the second run."""

    def translated(command: Command, limit_s: float) -> Answer:
        if isinstance(command, Prepare):
            changes = tuple(_translated(change, ids) for change in command.changes)
            command = replace(command, changes=changes)
        return ask(command, limit_s)

    return translated


def _translated(change: Any, ids: Ids) -> Any:
    """Return the change with the ids of the operations that it names."""
    names = {field.name for field in fields(change)} & {"op_id", "after"}
    return replace(change, **{name: ids[getattr(change, name)] for name in names})


def _loop(recording: Recording, loop_id: str) -> RecordedLoop:
    for loop in recording.loops:
        if loop.id == loop_id:
            return loop
    raise BehavedOtherwiseError("its loop did not come")


def _place(one: RecordedLoop | RecordedOperation) -> tuple[str, str | None, int | None]:
    return one.kind, one.file, one.line


def _place_of(loop: RecordedLoop) -> str:
    return f"line {loop.line} of {loop.file}"


_MADE = "The script was run a second time"
_CLOSER_LOOK = ("stacks", "profile", "repeat")


@dataclass(frozen=True)
class FirstRun:
    """The first run, from which a second one goes on."""

    session: Session
    recording: Recording
    settings: RunSettings
    tried: TrialsOfRun | None
    """Trials that it made already."""
    ends_at: float | None
    """`time.monotonic()` at which the time is up that `--timeout` gives to both runs."""


@dataclass(frozen=True)
class SecondRun:
    """Outcome of a second run."""

    says: str
    """That it was made, or why not, as sentences."""
    outcomes: dict[str, TrialOutcome] = field(default_factory=dict)
    """By the id of the loop; empty where nothing came to be tried."""
    began_s: float | None = None
    """Time of day at which it was started; None where it was not made."""
    cut_short: bool = False
    """True if it did not come to its own end, and so may have left files half written."""


def second_run(
    first: FirstRun,
    capture: Path,
    on_progress: OnProgress,
    *,
    budget_s: float,
    json_mode: bool,
) -> SecondRun | None:
    """Run the script once more, to try what its first run was over too soon for.

    None where there is nothing to try so. `budget_s` is the time that both runs have for trials.
    """
    edits = edits_for_second_run(first.session)
    loop = first.session.diagnosed_loop()
    if not edits or loop is None:
        return None
    left_s = _left_of_budget(first, budget_s)
    timeout_s = None if first.ends_at is None else first.ends_at - time.monotonic()
    if left_s <= 0 or (timeout_s is not None and timeout_s <= 0):
        given = "--budget" if left_s <= 0 else "--timeout"
        return SecondRun(f"The time that `{given}` gives was up before a second run could begin.")
    if INTERRUPTS.came:
        return SecondRun("Ctrl-C came before a second run could begin.")
    on_progress(RunsAgain(len(edits)))
    settings = replace(
        first.settings, capture_directory=str(capture), hold_loop=loop.id, run_to_end=False
    )
    tried = TrialsOfRun(lambda: first.session, on_progress, left_s)
    held = _Held(first.recording, settings.recording_path, loop.id, tried)
    began_s = time.time()
    try:
        child = supervise(
            settings,
            timeout_s=timeout_s,
            on_started=lambda _pid: None,
            on_progress=on_progress,
            on_trials=held,
            json_mode=json_mode,
        )
    except PipediagError as error:
        return SecondRun(f"The script could not be run a second time: {error}", began_s=began_s)
    cut_short = child.outcome not in ("finished", "exited")
    return SecondRun(held.says(child), tried.outcomes, began_s, cut_short)


def _left_of_budget(first: FirstRun, budget_s: float) -> float:
    """Return what is left for trials, less the closer look that the first run had."""
    if first.tried is not None and first.tried.outcomes:
        return first.tried.budget_s
    loop = first.session.diagnosed_loop()
    looks = [
        window.duration_ms
        for window in first.session.windows
        if loop is not None and window.loop_id == loop.id and window.kind in _CLOSER_LOOK
    ]
    return max(0.0, budget_s - sum(looks) / 1e3)


@dataclass
class _Held:
    """Called when the loop waits in the second run; has edits tried if it is the one measured."""

    first: Recording
    recording_path: Path
    """Of the second run."""
    hold_loop: str
    tried: TrialsOfRun
    otherwise: str | None = None

    def __call__(self, waiting: TrialsAwaited, ask: Ask) -> None:
        try:
            ids = same_operations(self.first, self._second(), self.hold_loop)
        except BehavedOtherwiseError as otherwise:
            self.otherwise = f"the script behaved otherwise than before: {otherwise}"
        except PipediagError as error:
            self.otherwise = str(error)
        else:
            self.tried(waiting, asked_by_new_ids(ask, ids))

    def says(self, child: ChildResult) -> str:
        outcome = self.tried.outcomes.get(self.hold_loop)
        if outcome is None:
            reason = self.tried.fault or self.otherwise or self._untried() or _how_it_ended(child)
            return f"{_MADE}, and nothing was tried: {reason.rstrip('.')}."
        if outcome.run.consumer == "pipeline alone":
            return f"{_MADE}; its loop could not be held, so its pipeline was tried alone."
        return f"{_MADE} to try changes in its loop. {_ending_of(child)}."

    def _untried(self) -> str | None:
        """Return why the loop could not be held, as its own process said."""
        try:
            loops = self._second().loops
        except (BehavedOtherwiseError, PipediagError):
            return None
        return next((one.untried for one in loops if one.id == self.hold_loop), None)

    def _second(self) -> Recording:
        recording = read_recording(self.recording_path)
        if recording is None:
            raise BehavedOtherwiseError("nothing was recorded")
        return recording


def _how_it_ended(child: ChildResult) -> str:
    if child.outcome in BY_ITSELF and not child.script_status:
        return "its loop was over before it could be held"
    return f"it ended before its loop could be held. {_ending_of(child)}"


def _ending_of(child: ChildResult) -> str:
    return (child.detail or f"It was {child.outcome}").rstrip(".")
