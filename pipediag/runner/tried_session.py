"""A session with what its trials showed."""

from __future__ import annotations

from pipediag.facts.order import concluded
from pipediag.facts.run import gain_of_all
from pipediag.rules.search.searching import told
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.outcome import TrialOutcome


def with_trials(session: Session, outcomes: dict[str, TrialOutcome], missing: str) -> Session:
    """The session with what was tried for its loop; `missing` says why nothing was."""
    loop = session.diagnosed_loop()
    outcome = outcomes.get(loop.id) if loop is not None else None
    if outcome is None:
        missing = (loop.untried if loop is not None else None) or missing
        return session.model_copy(
            update={
                "findings": told([_not_tried(finding, missing) for finding in session.findings]),
                "combined_missing": missing,
                "pipeline_alone_missing": missing,
                "trials_missing": missing,
            }
        )
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
    if tried.combined is not None:
        gain = gain_of_all(tried, tried.combined)
        combined = tried.combined.model_copy(update={"for_run": gain})
        tried = tried.model_copy(update={"combined": combined})
    return concluded(tried, told([_tried(finding, outcome) for finding in session.findings]))


def with_remark(session: Session, remark: str | None) -> Session:
    """The session with one more sentence wherever it says why an edit was not tried."""
    if remark is None:
        return session
    missing = session.trials_missing
    findings = [
        _not_tried(finding, _and(finding.trial.reason, remark))
        if finding.trial.state == "not_tried"
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
