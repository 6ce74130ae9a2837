"""Builds the session of a run that is over, and saves it at once."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipediag import __version__
from pipediag.errors import add_note
from pipediag.estimates import judge
from pipediag.facts.machine import cores_allowed
from pipediag.facts.order import concluded
from pipediag.facts.run_gain import gain_of_all, with_pauses_left_out, with_saved_traces
from pipediag.facts.script import edits_for_held_loop, edits_for_second_run, ended_well
from pipediag.measures.host import host_of_loop, host_samples
from pipediag.measures.loops import chosen_loop, loop_rows
from pipediag.measures.measured_loop import describe_embeddings, lacking, measure_loop
from pipediag.measures.run.ledger import measure_run, with_epochs_noted, with_given_epochs
from pipediag.measures.steps import Missing
from pipediag.measures.verdict.decision import decide
from pipediag.patching.workspace import made_in_a_loop
from pipediag.rules.input_service import last_resort
from pipediag.rules.parallel_maps import settled
from pipediag.rules.python_input import with_rewriting
from pipediag.rules.registry import reinstated, run_rules
from pipediag.rules.relevance import input_first
from pipediag.rules.step_overhead import OWN_PYTHON_FIRST
from pipediag.runner.output import OutputDirectory
from pipediag.runner.source_files import with_excerpt, with_patches, without_source
from pipediag.sensors.machine import describe_machine
from pipediag.session.edits import (
    ENOUGH_THE_SAME,
    FAILS,
    PASSES_DIFFER,
    RESULTS_DIFFER,
    Replace,
    adds_cache,
    saves_pauses,
    saves_traces,
)
from pipediag.session.files import SESSION_FILE
from pipediag.session.findings import Finding, Verdict, without_its_first
from pipediag.session.ledger import Run
from pipediag.session.messages import ChildResult, RunSettings
from pipediag.session.model import OtherProcesses, Script, Session
from pipediag.session.recording import Prediction, Recording
from pipediag.session.store import read_recording, read_timeline, save_session
from pipediag.session.timeline import HostTrack
from pipediag.session.trials import NO_BUDGET, Trial, TrialRun
from pipediag.trials.candidates import is_of_prediction, with_prediction_trial
from pipediag.trials.schedule import TrialOutcome

if TYPE_CHECKING:
    from pipediag.runner.analysis import AnalysisRequest
    from pipediag.runner.second_run import SecondRun
    from pipediag.runner.trials_of_run import TrialsOfRun

NO_RECORDING = "The script ended before TensorFlow was imported, so nothing was recorded."
NO_LOOP = "No training loop was seen."

UNDECIDED = Verdict(
    bottleneck="inconclusive",
    severity="unknown",
    summary="The verdict was not reached.",
    confidence="low",
    reasons=[],
)
"""Placeholder until the verdict is decided, as that rests on all the rest of the session."""

_PEER_ENDED = re.compile(r"(Unavailable|Aborted|Cancelled)Error\b")
"""Errors of TensorFlow in a worker where another one of its job has ended."""
LEFT_ALONE = "Another worker ended first, and this one can't go on without it."


def diagnose(
    child: ChildResult, host: HostTrack, settings: RunSettings, *, source: bool = True
) -> Session:
    """Return the session of a run, rules and verdict included, with the script's code only where
    `source` is true. Raises PipediagError: the recording can't be read."""
    recording = read_recording(settings.recording_path)
    environment = describe_machine(None if recording is None else recording.environment)
    left_alone = child.outcome == "raised" and _PEER_ENDED.match(child.detail or "") is not None
    if left_alone and environment.worker is not None:
        child = replace(child, outcome="stopped", detail=LEFT_ALONE)
    last = host.readings[-1] if host.readings else None
    others = None
    if last is not None and last.children:
        others = OtherProcesses(count=last.children, cpu_s=last.children_cpu_ns / 1e9)
    if recording is None:
        sections = lacking(NO_RECORDING) | {"run_missing": NO_RECORDING}
    else:
        sections = _sections_of(recording, child, host, settings, cores_allowed(environment))
    draft = Session(
        pipediag_version=__version__,
        created_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        script=Script(
            path=(settings.replaced_files or {}).get(
                os.path.realpath(settings.script), settings.script
            ),
            args=list(settings.args),
            module=settings.module,
            directory=None if settings.call else str(Path.cwd()),
            call=settings.call,
            loop=settings.loop,
            steps=settings.steps,
            status=child.script_status,
            outcome=child.outcome,
            detail=child.detail,
        ),
        environment=environment,
        verdict=UNDECIDED,
        device_memory_bytes=settings.device_memory_bytes,
        other_processes=others,
        wall_s=(child.ended_ns - child.started_ns) / 1e9,
        **sections,
    )
    decided = draft.but(verdict=decide(draft))
    session = concluded(decided, [_in_each_round(decided, one) for one in run_rules(decided)])
    return session if source else without_source(session)


def _in_each_round(session: Session, finding: Finding) -> Finding:
    """Mark the finding's cache as one that each `fit` fills, where a loop makes its data anew."""
    loop, edit = session.diagnosed_loop(), finding.edit
    if loop is None or loop.keras is None or loop.planned_rounds == 1 or edit is None:
        return finding
    caches = [change.after for change in edit.changes if adds_cache(change)]
    several = (loop.keras.epochs or 1) > 1 and edit.loop_id is None
    if not several or not any(made_in_a_loop(session, after) for after in caches):
        return finding
    return finding.but(edit=replace(edit, each_round=True))


def _sections_of(
    recording: Recording,
    child: ChildResult,
    host: HostTrack,
    settings: RunSettings,
    cores: float,
) -> dict[str, Any]:
    as_written, notes = recording, list(recording.notes)
    if settings.epochs is not None:
        recording = with_given_epochs(recording, settings.epochs)
    timeline = read_timeline(settings.timeline_path)
    run = measure_run(timeline, recording, child)
    loop, chosen = chosen_loop(recording, run, settings.loop)
    notes += chosen
    if isinstance(run, Run) and settings.epochs is not None:
        run, given = with_epochs_noted(run, as_written, settings.epochs)
        notes += [given] if given else []
    if loop is None:
        measured = lacking(NO_LOOP) | {"embeddings": describe_embeddings(recording.variables)}
    else:
        of_loop = host_of_loop(host, recording, loop, cores)
        measured, untold = measure_loop(timeline, recording, loop, of_loop)
        notes += untold
    return {
        **measured,
        "run": None if isinstance(run, Missing) else run,
        "run_missing": run.reason if isinstance(run, Missing) else None,
        "embeddings_missing": None if loop is None else loop.tables_missing,
        "loops": loop_rows(recording, run, loop),
        "host_samples": host_samples(host, recording.windows, recording.started_ns, cores),
        "predictions": _settled(recording),
        "other_uses": recording.other_uses,
        "notes": notes,
    }


def _settled(recording: Recording) -> list[Prediction]:
    """Return the calls, as after the training where no training loop made a step since the first of
    them."""
    last_ns = max(
        (one.last_ns or 0 for one in recording.loops if one.role == "training"), default=0
    )
    return [
        replace(one, after_training=one.after_training and one.began_ns > last_ns)
        for one in recording.predictions
    ]


EVALUATION_OVER = "Its evaluation data was gone, or no time was left, when its turn came."


def with_trials(session: Session, outcomes: Mapping[str, TrialOutcome], missing: str) -> Session:
    """Return the session with what was tried in its loops, or `missing`, why nothing was."""
    loop = session.diagnosed_loop()
    outcome = outcomes.get(loop.id) if loop is not None else None
    missing = (loop.untried if loop is not None else None) or missing
    tried = _with_outcome(session, outcome, missing)
    edits = [finding.edit for finding in session.findings if finding.edit is not None]
    evaluated = any(edit.loop_id in outcomes for edit in edits if edit.loop_id is not None)

    def with_trial(finding: Finding) -> Finding:
        if is_of_prediction(finding):
            return with_prediction_trial(session, finding)
        loop_id = finding.edit.loop_id if finding.edit is not None else None
        if loop_id is not None and loop_id in outcomes:
            return _tried(finding, outcomes[loop_id])
        if loop_id is not None:
            evaluating = next((one for one in session.loops if one.id == loop_id), None)
            return _not_tried(finding, (evaluating and evaluating.untried) or EVALUATION_OVER)
        if outcome is None:
            return _not_tried(finding, missing)
        return _advised(session, _of_the_run(session, _tried(finding, outcome), outcome.run))

    found = [with_trial(finding) for finding in session.findings]
    findings = with_rewriting(tried, settled(tried, found))
    if outcome is not None and {one.trial.state for one in findings} <= {"refuted", "not_tried"}:
        findings += last_resort(tried, findings, failed=True)
    if outcome is not None:
        findings = reinstated(findings)
    tried = tried.but(findings=findings)
    timed = any(one.trial.state != "not_tried" for one in findings)
    if outcome is None and not evaluated and not timed and not session.predictions:
        return tried
    if tried.combined is not None:
        tried = tried.but(combined=tried.combined.but(for_run=gain_of_all(tried, tried.combined)))
    session = concluded(tried, findings)
    # Its bound is not below what a trial gained.
    decided = decide(session)
    verdict = session.verdict.but(summary=decided.summary, reasons=decided.reasons)
    return session.but(verdict=verdict)


def _with_outcome(session: Session, outcome: TrialOutcome | None, missing: str) -> Session:
    if outcome is None:
        return session.but(
            combined_missing=missing, pipeline_alone_missing=missing, trials_missing=missing
        )
    return session.but(
        combined=outcome.combined,
        combined_missing=outcome.combined_missing,
        pipeline_alone=outcome.pipeline_alone,
        pipeline_alone_missing=outcome.pipeline_alone_missing,
        trials=outcome.run,
        trials_missing=None,
    )


def with_remark(session: Session, remark: str | None) -> Session:
    """Return the session with a sentence added wherever it says why an edit was not tried."""
    if remark is None:
        return session

    def remarked(finding: Finding) -> Finding:
        of_evaluation = finding.edit is not None and finding.edit.loop_id is not None
        if finding.trial.state != "not_tried" or of_evaluation:
            return finding
        return _not_tried(finding, " ".join(filter(None, (finding.trial.reason, remark))))

    missing = session.trials_missing and f"{session.trials_missing} {remark}"
    return session.but(findings=list(map(remarked, session.findings)), trials_missing=missing)


def _tried(finding: Finding, outcome: TrialOutcome) -> Finding:
    trial = outcome.trials.get(finding.edit.id) if finding.edit is not None else None
    if trial is None:
        return finding
    tried, check = finding.but(trial=trial), finding.edit.check if finding.edit else None
    same = trial.same_elements
    if same is not None and same >= ENOUGH_THE_SAME:
        advice = f"{finding.advice} In two passes the first {same:,} elements were the same."
        left = without_its_first(finding.condition)
        return tried.but(condition=left, effect_on_results="same results", advice=advice)
    if check == "outputs" and finding.edit is not None and trial.speedup is not None:
        advice = f"{finding.advice} The model's outputs were the same for the batches compared."
        mixes_less = any(isinstance(change, Replace) for change in finding.edit.changes)
        condition = finding.condition if mixes_less else None
        return tried.but(condition=condition, advice=advice)
    reason = trial.reason or ""
    if reason.startswith((PASSES_DIFFER, RESULTS_DIFFER[2])):
        tried = tried.but(status="informative", severity="info")
    # The elements before a cache are those of the script's own pipeline.
    fails = reason.startswith(FAILS) and check != "repeats"
    if fails or reason.startswith((PASSES_DIFFER, *RESULTS_DIFFER)):
        tried = tried.but(effect_on_results="not safe here")
    return tried


def _of_the_run(session: Session, finding: Finding, run: TrialRun) -> Finding:
    """Return a finding whose edit saves traces or pauses with what that comes to in the run."""
    trial, pauses = finding.trial, saves_pauses(finding.edit)
    if not (pauses or saves_traces(finding.edit)) or trial.speedup is None:
        return finding
    saved = (
        with_pauses_left_out(session, trial, run) if pauses else with_saved_traces(session, trial)
    )
    if saved is not None and saved.ci95 is not None:
        return finding.but(trial=saved.but(state=judge(*saved.ci95), reason=None))
    what = "pauses" if pauses else "traces"
    reason = f"It saves {what}, and it is not known how many the whole run would have."
    unknown = trial.but(state="inconclusive", reason=reason, speedup=None, ci95=None)
    return finding.but(trial=unknown)


def _advised(session: Session, finding: Finding) -> Finding:
    """Return a confirmed finding without the words that other causes come first."""
    first = (input_first(session), OWN_PYTHON_FIRST)
    words = next((one for one in first if one and finding.advice.startswith(one)), None)
    if finding.trial.state != "confirmed" or finding.edit is None or words is None:
        return finding
    rest = finding.advice.removeprefix(words).strip()
    return finding.but(advice=rest or f"Apply the confirmed change: {finding.edit.label}.")


def _not_tried(finding: Finding, reason: str) -> Finding:
    if finding.edit is None:
        return finding
    return finding.but(trial=Trial(state="not_tried", reason=reason))


NOT_WAITED = "The script ended before its loop could be measured and held for trials."
OBSERVED = "`--run-to-end` only observes, so nothing was tried."
OBSERVED_AND_OFFERED = (
    "`--run-to-end` only observes, so nothing was tried; `--rerun` tries changes in a second run, "
    "which is then stopped."
)
WATCHED = (
    "A training that is watched is only observed, so nothing was tried; "
    "`pipediag analyze --rerun train.py` tries changes in a second run, which is then stopped."
)
STOPPED = (
    "The second run was stopped: files that it was writing may be incomplete, and the script's "
    "next run may find and use them."
)
OFFER = "`--rerun` would run the script a second time to try it in the running loop."


@dataclass(frozen=True)
class EndedRun:
    """A run that is over: what was asked for, and what came of it."""

    request: AnalysisRequest
    settings: RunSettings
    output: OutputDirectory
    child: ChildResult
    host: HostTrack
    tried: TrialsOfRun | None
    """Trials of the run; None where no loop waited for any."""
    began_s: float
    """Time of day at which it was started."""

    @property
    def outcomes(self) -> Mapping[str, TrialOutcome]:
        """Return what was tried in it, by the id of the loop."""
        return self.tried.outcomes if self.tried is not None else {}


@dataclass(frozen=True)
class Recorded:
    """A run whose session is saved."""

    run: EndedRun
    session: Session
    untried: Session
    """The session as measured, with no trial in it."""
    recording: Recording | None


def record(run: EndedRun) -> Recorded:
    """Save the session of a run; what was recorded is kept where that fails."""
    output, settings, rerun = run.output, run.settings, run.request.rerun
    try:
        untried = diagnose(run.child, run.host, settings, source=run.request.source)
        untried = untried.but(script=untried.script.but(timeout_s=run.request.timeout_s))
        recording = read_recording(settings.recording_path) if rerun else None
        fault = run.tried.fault if run.tried is not None else None
        session = with_trials(untried, run.outcomes, fault or why_not_tried(run))
        if rerun or not settings.run_to_end:
            session = with_remark(session, remark(session, rerun=rerun))
        session = _with_code(session, run)
        save_session(session, output.path / SESSION_FILE)
        output.keep_trace()
    except BaseException as error:
        add_note(error, f"The recording is kept in {output.capture}")
        raise
    output.discard_capture()
    return Recorded(run, session, untried, recording)


def with_second_run(first: Recorded, second: SecondRun) -> Session:
    """Return the session of the first run with what the second one showed, saved in its place."""
    session, run = first.session, first.run
    loop = session.diagnosed_loop()
    if second.outcome is not None and loop is not None:
        outcomes = {**run.outcomes, loop.id: second.outcome}
        session = with_trials(first.untried, outcomes, NOT_WAITED)
    else:
        session = with_remark(session, second.says)
    script = session.script.but(second_run=second.says)
    notes = [*session.notes, second.says, *([STOPPED] if second.cut_short else [])]
    session = _with_code(session.but(script=script, notes=notes), run)
    save_session(session, run.output.path / SESSION_FILE)
    return session


def _with_code(session: Session, run: EndedRun) -> Session:
    if not run.request.source:
        return session
    return with_excerpt(with_patches(session, run.began_s), run.began_s)


def why_not_tried(run: EndedRun) -> str:
    """Return the sentence for a run in which no loop was held for trials."""
    if not run.settings.run_to_end:
        return NOT_WAITED if run.request.budget_s > 0 else NO_BUDGET
    if run.settings.call is not None:
        return WATCHED
    return OBSERVED if run.request.rerun else OBSERVED_AND_OFFERED


def remark(session: Session, *, rerun: bool) -> str | None:
    """Return what a second run would do, or why none is made though it was asked for."""
    if session.script.call is not None:
        return None
    if not rerun:
        return OFFER if edits_for_second_run(session) else None
    script = session.script
    if script.outcome == "stopped" or ended_well(script) or not edits_for_held_loop(session):
        return None
    return "It did not end normally, so it was not run a second time."
