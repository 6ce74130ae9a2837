"""What the parent makes of runs that are over: a session, which is saved at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pipediag.errors import add_note
from pipediag.facts.second_run import edits_for_held_loop, edits_for_second_run, ended_well
from pipediag.runner.diagnosis import diagnose
from pipediag.runner.output import OutputDirectory
from pipediag.runner.source_excerpt import with_excerpt
from pipediag.runner.source_patches import with_patches, without_source
from pipediag.runner.supervisor import ChildResult
from pipediag.runner.tried_session import with_remark, with_trials
from pipediag.runner.written_files import MOST_NAMED, sentence, written_since
from pipediag.session.files import SESSION_FILE
from pipediag.session.host_track import HostTrack
from pipediag.session.model import Session
from pipediag.session.reading import read_recording
from pipediag.session.recording import Recording
from pipediag.session.settings import RECORDING_FILE, RunSettings
from pipediag.session.store import save_session
from pipediag.session.trials import NO_BUDGET

if TYPE_CHECKING:
    # Where nothing was tried, what trials are made of need not be imported.
    from pipediag.runner.second_run import SecondRun
    from pipediag.runner.trials_of_run import TrialsOfRun
    from pipediag.trials.outcome import TrialOutcome

NOT_WAITED = "The script ended before its loop was measured and could be held for trials."
OBSERVED = "`--run-to-end` only observes, so nothing was tried."
OBSERVED_AND_OFFERED = (
    "`--run-to-end` only observes, so nothing was tried; `--rerun` tries changes in a second run, "
    "which is ended afterwards."
)
WATCHED = (
    "A training that is watched is only observed, so nothing was tried; "
    "`pipediag analyze --rerun train.py` tries changes in a second run, which is ended afterwards."
)
OFFER = "`--rerun` would run the script a second time to try it in the running loop."


@dataclass(frozen=True)
class EndedRun:
    """What the parent holds when the child has ended."""

    child: ChildResult
    host: HostTrack
    tried: TrialsOfRun | None
    """None where no loop waited for trials."""
    began_s: float
    """Time of day at which it was started."""


@dataclass(frozen=True)
class Recorded:
    """A run whose session is saved."""

    session: Session
    untried: Session
    """As it was measured, with no trial in it."""
    recording: Recording | None
    outcomes: Mapping[str, TrialOutcome] = field(default_factory=dict)
    """What was tried in it, by the id of the loop."""


def record(
    settings: RunSettings,
    run: EndedRun,
    output: OutputDirectory,
    *,
    budget_s: float,
    rerun: bool,
    source: bool = True,
) -> Recorded:
    """Save the session of a run; what was recorded is kept where that fails."""
    with _keeping_the_recording(output):
        untried = diagnose(output.capture, run.child, run.host, settings)
        if not source:
            untried = without_source(untried)
        recording = read_recording(output.capture / RECORDING_FILE) if rerun else None
        outcomes, fault = (run.tried.outcomes, run.tried.fault) if run.tried else ({}, None)
        missing = fault or why_not_tried(settings, budget_s, rerun=rerun)
        session = with_trials(untried, outcomes, missing)
        if rerun or not settings.run_to_end:
            session = with_remark(session, remark(session, rerun=rerun))
        if session.script.outcome == "stopped" and settings.call is None:
            session = _with_written_files(
                session, settings, run.began_s, output, "The script was stopped."
            )
        if source:
            session = with_excerpt(with_patches(session, run.began_s), run.began_s)
        save_session(session, output.path / SESSION_FILE)
        output.keep_trace()
    output.discard_capture()
    return Recorded(session, untried, recording, outcomes)


def with_second_run(
    first: Recorded,
    settings: RunSettings,
    second: SecondRun,
    output: OutputDirectory,
    *,
    patches_since_s: float | None = None,
) -> Session:
    """The session of the first run with what the second one showed, saved in its place.

    Patches are of files that have not been changed since a time of day; None makes none.
    """
    loop = first.session.diagnosed_loop()
    outcome = second.outcomes.get(loop.id) if loop is not None else None
    session = first.session
    if outcome is not None and loop is not None:
        session = with_trials(first.untried, {**first.outcomes, loop.id: outcome}, NOT_WAITED)
    else:
        session = with_remark(session, second.says)
    script = session.script.model_copy(update={"second_run": second.says})
    notes = [*session.notes, second.says]
    session = session.model_copy(update={"script": script, "notes": notes})
    if second.began_s is not None and second.cut_short:
        session = _with_written_files(
            session, settings, second.began_s, output, "The script was stopped in its second run."
        )
    if patches_since_s is not None:
        session = with_patches(session, patches_since_s)
        session = with_excerpt(session, patches_since_s)
    save_session(session, output.path / SESSION_FILE)
    return session


def why_not_tried(settings: RunSettings, budget_s: float, *, rerun: bool) -> str:
    """Return the sentence for a run in which no loop was held for trials."""
    if not settings.run_to_end:
        return NOT_WAITED if budget_s > 0 else NO_BUDGET
    if settings.call is not None:
        return WATCHED
    return OBSERVED if rerun else OBSERVED_AND_OFFERED


def remark(session: Session, *, rerun: bool) -> str | None:
    """What a second run would do, or why none is made though it was asked for; None elsewhere."""
    if session.script.call is not None:
        return None
    if not rerun:
        return OFFER if edits_for_second_run(session) else None
    script = session.script
    if script.outcome == "stopped" or ended_well(script) or not edits_for_held_loop(session):
        return None
    return "It did not end well, so it was not run a second time."


def _with_written_files(
    session: Session, settings: RunSettings, began_s: float, output: OutputDirectory, stopped: str
) -> Session:
    """A script that was stopped may have left files that mislead its next run."""
    folders = [Path.cwd(), *([] if settings.module else [Path(settings.script).parent])]
    aside = [output.kept_aside] if output.kept_aside is not None else []
    files = written_since(began_s, folders, [output.path, *aside])
    if not files:
        return session
    script = session.script.model_copy(update={"files_written": files[:MOST_NAMED]})
    notes = [*session.notes, sentence(files, stopped)]
    return session.model_copy(update={"script": script, "notes": notes})


@contextmanager
def _keeping_the_recording(output: OutputDirectory) -> Iterator[None]:
    """On any failure, leave what the child wrote where it is, and say so."""
    try:
        yield
    except BaseException as error:
        add_note(error, f"What was recorded is kept in {output.capture}")
        raise
