"""Recorded sessions of labelled scripts, judged anew without running anything.

Each script has two recordings of one version of its code. Their measurements are kept as they
were; verdict and findings are made from them by the code under test, and the trials that were made
then are joined to the edits that the rules recommend now.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

from pipediag.facts.order import concluded, to_act_on
from pipediag.measures.verdict.decision import decide
from pipediag.rules.registry import run_rules
from pipediag.runner.build_session import with_trials
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.schedule import TrialOutcome
from tests.samples.expectation import Expectation, false_confirmations

SESSIONS = Path(__file__).parent / "sessions"
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")


def recorded_session(path: Path) -> Session:
    """Return the session of a compressed recording, of its findings those with an edit.

    Nothing is read of the others, which may be of rules and subjects that are no more.
    """
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["findings"] = [finding for finding in content["findings"] if finding["edit"]]
    return Session.model_validate(content)


def judged_anew(recorded: Session) -> Session:
    """Return the session with verdict and findings by the rules of today."""
    decided = recorded.but(findings=[])
    decided = decided.but(verdict=decide(decided))
    draft = concluded(decided, run_rules(decided))
    loop = draft.diagnosed_loop()
    if loop is None or recorded.trials is None:
        return with_trials(draft, {}, recorded.trials_missing or "No trial was made.")
    outcome = TrialOutcome(
        run=recorded.trials,
        trials=_trials(recorded, draft),
        combined=recorded.combined,
        combined_missing=recorded.combined_missing,
        pipeline_alone=recorded.pipeline_alone,
        pipeline_alone_missing=recorded.pipeline_alone_missing,
    )
    return with_trials(draft, {loop.id: outcome}, "No trial was made.")


def _trials(recorded: Session, draft: Session) -> dict[str, Trial]:
    """Return the trials that were made by the ids of today's edits with the same changes."""
    made = [(one.edit, one.trial) for one in recorded.findings if one.edit is not None]
    return {
        one.edit.id: trial
        for one in draft.findings
        for edit, trial in reversed(made)
        if one.edit is not None and edit.changes == one.edit.changes
    }


def decisions(session: Session) -> dict[str, object]:
    """Return what a session decides: verdict, and status, edit and trial of each failing rule."""
    verdict = session.verdict
    return {
        "bottleneck": verdict.bottleneck,
        "where": verdict.where,
        "line": f"{Path(verdict.file).name}:{verdict.line}" if verdict.file else None,
        "findings": [
            [one.rule, one.status, one.edit.id if one.edit else None, one.trial.state]
            for one in session.findings
            if one.status in ("fail", "informative", "inconclusive", "error")
        ],
    }


def answer(session: Session) -> dict[str, object]:
    """Return the part of a session that a reader acts on, without its figures."""
    verdict = session.verdict
    failed = [one.title for one in session.findings if one.status == "fail"]
    return {
        "bottleneck": verdict.bottleneck,
        "culprit": f"{Path(verdict.file).name}:{verdict.line}" if verdict.file else None,
        "first advice": next((one.rule for one in session.findings if to_act_on(one)), None),
        "causes": {_FIGURES.sub("#", text) for text in [*failed, verdict.summary]},
    }


def false_causes(expected: Expectation, session: Session) -> list[str]:
    """Return the rules that failed or were confirmed although the script's truth excludes them."""
    excluded = {*expected.rules.not_fail, *expected.rules.silent}
    failed = {one.rule for one in session.findings if one.status == "fail"}
    return sorted({*(failed & excluded), *false_confirmations(expected, session)})
