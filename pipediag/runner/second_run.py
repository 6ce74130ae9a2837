"""A script that was over too soon, run once more: its loop is held, edits are tried, it is stopped.

Nothing is measured again: session and edits are those of the first run.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from pipediag.errors import PipediagError
from pipediag.facts.script import edits_for_second_run
from pipediag.interrupts import INTERRUPTS
from pipediag.runner.child_connection import Ask
from pipediag.runner.child_process import ChildResult, supervise
from pipediag.runner.progress import OnProgress, runs_again
from pipediag.runner.trials_of_run import TrialsOfRun
from pipediag.session.messages import RunSettings, TrialsAwaited
from pipediag.session.model import Session
from pipediag.session.reading import read_recording
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.trials.schedule import TrialOutcome
from pipediag.vocabulary import BY_ITSELF


class BehavedOtherwiseError(Exception):
    """The second run is not like the first; the message is the end of a sentence."""


def refuse_others(first: Recording, second: Recording, loop_id: str) -> None:
    """Refuse a second run in which loop or operations, by their ids, are not those of the first.

    Raises:
        BehavedOtherwiseError: the loop of that id is another one, or reads from other operations.
    """
    one, other = _loop(first, loop_id), _loop(second, loop_id)
    if _place(one) != _place(other):
        raise BehavedOtherwiseError(
            f"the loop in {_place_of(other)} came where the one in {_place_of(one)} had been"
        )
    if one.root_op_id != other.root_op_id or _read(first, one) != _read(second, one):
        raise BehavedOtherwiseError("its loop read from another pipeline")


def _read(recording: Recording, loop: RecordedLoop) -> dict[str, tuple[object, ...] | None]:
    """Return the operations that a loop reads from by their ids, those in functions included."""
    known = {one.id: one for one in recording.operations}
    found: dict[str, tuple[object, ...] | None] = {}
    pending = [loop.root_op_id] if loop.root_op_id is not None else []
    while pending:
        op_id = pending.pop()
        if op_id not in found:
            op = known.get(op_id)
            found[op_id] = None if op is None else (*_place(op), op.inside_function_of)
            pending += [*op.parent_ids] if op is not None else []
            pending += [one.id for one in known.values() if one.inside_function_of == op_id]
    return found


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
    on_progress(runs_again(len(edits)))
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
            refuse_others(self.first, self._second(), self.hold_loop)
        except BehavedOtherwiseError as otherwise:
            self.otherwise = f"the script behaved otherwise than before: {otherwise}"
        except PipediagError as error:
            self.otherwise = str(error)
        else:
            self.tried(waiting, ask)

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
