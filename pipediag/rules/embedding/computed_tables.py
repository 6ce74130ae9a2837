"""What passes over a whole table, judged by how much of the step is computed."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.limits import Threshold
from pipediag.facts.step import class_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Prediction
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar


def computed_percent(session: Session) -> float:
    """Of the step, by the device."""
    return class_percent(session, ["device_compute"])


def judged_by_compute(
    meta: Meta,
    session: Session,
    least: Threshold,
    advice: str,
    evidence: Mapping[str, Scalar],
    *,
    missing: str,
    edit: Edit | None = None,
    untried: str | None = None,
) -> Finding:
    """What a rule finds: it informs where less than `least` of the step is compute, or input waits.

    Args:
        missing: why nothing is predicted, as a sentence.
    """
    compute = computed_percent(session)
    if compute < least.value:
        advice = f"{advice} Here only {compute:.0f} % of the step is compute."
        return meta.finding("informative", advice, evidence=evidence)
    if waits := input_first(session):
        return meta.finding("informative", waits, evidence=evidence)
    loop = session.diagnosed_loop()
    return meta.finding(
        "fail",
        advice,
        place=(loop.file, loop.line) if loop else None,
        evidence=evidence,
        own_prediction=Prediction(None, missing),
        edit=edit,
        untried=untried,
    )
