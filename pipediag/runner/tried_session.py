"""A session with what its trials showed."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.order import concluded
from pipediag.facts.run_gain import gain_of_all
from pipediag.rules.pipeline.parallel_map import settled
from pipediag.rules.registry import METAS
from pipediag.rules.running import reinstated
from pipediag.rules.search.searching import told
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.outcome import TrialOutcome

EVALUATION_OVER = "What it evaluates on was gone, or no time was left, when it could be tried."


def with_trials(session: Session, outcomes: Mapping[str, TrialOutcome], missing: str) -> Session:
    """The session with what was tried for its loop, and for those that evaluate; `missing` says why
    nothing was."""
    loop = session.diagnosed_loop()
    outcome = outcomes.get(loop.id) if loop is not None else None
    missing = (loop.untried if loop is not None else None) or missing
    tried = _with_outcome(session, outcome, missing)
    evaluated = [outcomes[id].run for id in _evaluated(session) if id in outcomes]
    tried = tried.model_copy(update={"evaluation_trials": evaluated})

    def with_trial(finding: Finding) -> Finding:
        if _is_of_evaluation(finding):
            return _of_evaluation(session, finding, outcomes)
        return _not_tried(finding, missing) if outcome is None else _tried(finding, outcome)

    listed = [*session.findings, *_further(session, outcome)]
    findings = settled(tried, told([with_trial(finding) for finding in listed]))
    if outcome is not None:
        findings = reinstated(findings, METAS)
    if outcome is None and not evaluated:
        return tried.model_copy(update={"findings": findings})
    return concluded(tried, findings)


def _with_outcome(session: Session, outcome: TrialOutcome | None, missing: str) -> Session:
    """What came of the trials in its loop as a whole."""
    if outcome is None:
        reasons = ("combined_missing", "pipeline_alone_missing", "trials_missing")
        return session.model_copy(update=dict.fromkeys(reasons, missing))
    tried = session.model_copy(
        update={
            "combined": outcome.combined,
            "combined_missing": outcome.combined_missing,
            "pipeline_alone": outcome.pipeline_alone,
            "pipeline_alone_missing": outcome.pipeline_alone_missing,
            "trials": outcome.run,
            "trials_missing": None,
        }
    )
    if tried.combined is None:
        return tried
    gain = gain_of_all(tried, tried.combined)
    combined = tried.combined.model_copy(update={"for_run": gain})
    return tried.model_copy(update={"combined": combined})


def _further(session: Session, outcome: TrialOutcome | None) -> list[Finding]:
    """What was tried as nothing helped that these findings call for; each edit once."""
    known = {finding.edit.id for finding in session.findings if finding.edit is not None}
    further = outcome.further if outcome is not None else ()
    return [one for one in further if one.edit is not None and one.edit.id not in known]


def _evaluated(session: Session) -> list[str]:
    """The loops that evaluate and whose pipelines an edit would change, each once."""
    edits = [finding.edit for finding in session.findings if finding.edit is not None]
    return list(dict.fromkeys(edit.loop_id for edit in edits if edit.loop_id is not None))


def _is_of_evaluation(finding: Finding) -> bool:
    return finding.edit is not None and finding.edit.loop_id is not None


def _of_evaluation(
    session: Session, finding: Finding, outcomes: Mapping[str, TrialOutcome]
) -> Finding:
    assert finding.edit is not None
    outcome = outcomes.get(finding.edit.loop_id or "")
    if outcome is not None:
        return _tried(finding, outcome)
    loop = next((one for one in session.loops if one.id == finding.edit.loop_id), None)
    return _not_tried(finding, (loop.untried if loop is not None else None) or EVALUATION_OVER)


def with_remark(session: Session, remark: str | None) -> Session:
    """The session with one more sentence wherever it says why an edit was not tried in it."""
    if remark is None:
        return session
    missing = session.trials_missing
    findings = [
        _not_tried(finding, _and(finding.trial.reason, remark))
        if finding.trial.state == "not_tried" and not _is_of_evaluation(finding)
        else finding
        for finding in session.findings
    ]
    return session.model_copy(
        update={"findings": findings, "trials_missing": missing and _and(missing, remark)}
    )


def _and(reason: str | None, remark: str) -> str:
    return f"{reason} {remark}" if reason else remark


def _tried(finding: Finding, outcome: TrialOutcome) -> Finding:
    trial = outcome.trials.get(finding.edit.id) if finding.edit is not None else None
    return finding if trial is None else finding.model_copy(update={"trial": trial})


def _not_tried(finding: Finding, reason: str) -> Finding:
    if finding.edit is None:
        return finding
    return finding.model_copy(update={"trial": Trial(state="not_tried", reason=reason)})
