"""The session of a pipeline that nothing consumed, without what only a consumer gives a meaning."""

from __future__ import annotations

from typing import Any

from pipediag.measures.verdict.input_alone import NOTHING_TRAINED, decide_input_alone
from pipediag.session.model import Session

_NO_MEANING = ("run", "breakdown", "input_wait", "perturbation", "differential", "ceiling")
"""Shares of a step that is the pipeline's own time, and of a run that nobody planned."""


def of_input_alone(session: Session) -> Session:
    """The same measurements, told as those of a pipeline: no share of a step, no gain of a run."""
    changed: dict[str, Any] = {"verdict": decide_input_alone(session)}
    for name in _NO_MEANING:
        changed[name] = None
        if f"{name}_missing" in Session.model_fields:
            changed[f"{name}_missing"] = NOTHING_TRAINED
    changed["findings"] = [
        finding.model_copy(update={"for_run": None}) for finding in session.findings
    ]
    if session.combined is not None:
        changed["combined"] = session.combined.model_copy(update={"for_run": None})
    return session.model_copy(update=changed)
