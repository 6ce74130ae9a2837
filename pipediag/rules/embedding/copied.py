"""Advice that spares a copy to the device, judged by what copies take of a step."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.step import class_percent
from pipediag.rules.pipeline.widened_ids import COPIED
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar


def judged_by_copies(
    meta: Meta, session: Session, advice: str, evidence: Mapping[str, Scalar]
) -> Finding:
    """It fails where copies take a relevant part, and nothing else has to be seen to first."""
    copied = class_percent(session, ["device_copy"])
    evidence = {**evidence, "device_copy_percent": copied}
    if copied < COPIED.value:
        advice = f"{advice} Here copies to the device take only {copied:.1f} % of the step."
        return meta.finding("informative", advice, evidence=evidence)
    if waits := input_first(session):
        return meta.finding("informative", f"{advice} {waits}", evidence=evidence)
    loop = session.diagnosed_loop()
    return meta.finding(
        "fail",
        advice,
        place=(loop.file, loop.line) if loop else None,
        evidence=evidence,
    )
