"""A script that was over too soon, run once more: its loop is held, edits are tried, it is stopped.

Nothing is measured again: session and edits are those of the first run.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import PipediagError
from pipediag.facts.script import edits_for_second_run
from pipediag.interrupts import INTERRUPTS
from pipediag.measures.pipeline import plan_of
from pipediag.runner.child_process import supervise
from pipediag.runner.progress import OnProgress, runs_again
from pipediag.runner.trials_of_run import TrialsOfRun
from pipediag.session.messages import ChildResult
from pipediag.session.model import Session
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.session.store import read_recording
from pipediag.trials.schedule import TrialOutcome
from pipediag.vocabulary import BY_ITSELF

if TYPE_CHECKING:
    from pipediag.runner.build_session import Recorded


def is_same_loop(first: Recording, second: Recording | None, loop_id: str) -> bool:
    """Return True if the loop of that id, and its operations, are those of the first run."""
    one, other = _loop(first, loop_id), _loop(second, loop_id)
    if second is None or one is None or other is None:
        return False

    def read(recording: Recording, loop: RecordedLoop) -> list[tuple[object, ...]]:
        plan = plan_of(recording.operations, loop.root_op_id)
        return [(op.id, *_place(op), op.inside_function_of) for op in plan]

    return _place(one) == _place(other) and read(first, one) == read(second, other)


def _loop(recording: Recording | None, loop_id: str) -> RecordedLoop | None:
    return next((one for one in recording.loops if one.id == loop_id), None) if recording else None


def _place(one: RecordedLoop | RecordedOperation) -> tuple[str, str | None, int | None]:
    return one.kind, one.file, one.line


_MADE = "The script was run a second time"


@dataclass(frozen=True)
class SecondRun:
    """Outcome of a second run."""

    says: str
    """Sentences that it was made, or why not."""
    outcome: TrialOutcome | None = None
    """Trials in the loop; None where nothing came to be tried."""
    cut_short: bool = False
    """True if it did not come to its own end, and so may have left files half written."""


def second_run(first: Recorded, capture: Path, on_progress: OnProgress) -> SecondRun | None:
    """Run the script once more, to try what its first run was over too soon for; None where there
    is nothing to try so. `--budget` and `--timeout` are for both runs."""
    edits = edits_for_second_run(first.session)
    loop, recording, run = first.session.diagnosed_loop(), first.recording, first.run
    if not edits or loop is None or recording is None:
        return None
    left_s = run.request.budget_s if run.tried is None else run.tried.budget_s
    timeout_s = run.request.timeout_s
    if timeout_s is not None:
        timeout_s += run.child.started_ns / 1e9 - time.monotonic()
    if left_s <= 0 or (timeout_s is not None and timeout_s <= 0):
        given = "--budget" if left_s <= 0 else "--timeout"
        return SecondRun(f"The time allowed by `{given}` was up before a second run could begin.")
    if INTERRUPTS.came:
        return SecondRun("Ctrl-C was pressed before a second run could begin.")
    on_progress(runs_again(len(edits)))
    settings = replace(
        run.settings, capture_directory=str(capture), hold_loop=loop.id, run_to_end=False
    )
    before, loop_id, recorded = recording, loop.id, settings.recording_path

    def draft() -> Session:
        if not is_same_loop(before, read_recording(recorded), loop_id):
            raise PipediagError("this time its loop, or what that reads, was another")
        return first.session

    tried = TrialsOfRun(draft, on_progress, left_s)
    try:
        child = supervise(
            settings,
            timeout_s=timeout_s,
            on_started=lambda _: None,
            on_progress=on_progress,
            on_trials=tried,
            json_mode=run.request.script_output_to_stderr,
        )
    except PipediagError as error:
        return SecondRun(f"The script could not be run a second time: {error}")
    outcome, cut_short = tried.outcomes.get(loop_id), child.outcome not in ("finished", "exited")
    fault = tried.fault or _untried(recorded, loop_id)
    return SecondRun(_what_came_of_it(outcome, fault, child), outcome, cut_short)


def _what_came_of_it(outcome: TrialOutcome | None, fault: str | None, child: ChildResult) -> str:
    if outcome is None:
        ended = f"it ended before its loop could be held. {_ending_of(child)}"
        if child.outcome in BY_ITSELF and not child.script_status:
            ended = "its loop was over before it could be held"
        return f"{_MADE}, and nothing was tried: {(fault or ended).rstrip('.')}."
    if outcome.run.consumer == "pipeline alone":
        return f"{_MADE}; its loop could not be held, so its pipeline was tried alone."
    return f"{_MADE} to try changes in its loop. {_ending_of(child)}."


def _untried(recorded: Path, loop_id: str) -> str | None:
    """Return why the loop could not be held, as its own process reported it."""
    with suppress(PipediagError):
        loop = _loop(read_recording(recorded), loop_id)
        return loop.untried if loop is not None else None
    return None


def _ending_of(child: ChildResult) -> str:
    return (child.detail or f"It was {child.outcome}").rstrip(".")
