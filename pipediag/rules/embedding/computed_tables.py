"""What passes over a whole table, judged by how much of the step it takes.

That is the parts that the profile found, where it tells operations apart, or else all compute.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.facts.amounts import exact_time
from pipediag.facts.embedding_cost import percent_of_step
from pipediag.facts.limits import OPERATION_SHARE, Threshold
from pipediag.facts.step import class_percent
from pipediag.rules.bounds import at_most_without
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
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
    took_ms: float | None,
    gone_ms: float | None = None,
    edit: Edit | None = None,
    untried: str | None = None,
    place: tuple[str, int] | None = None,
) -> Finding:
    """Return what a rule finds: it informs where the passes take little, or input comes first.

    Its edit is tried in either case.

    Args:
        least: of the step that has to be compute, where no more is known.
        took_ms: of a step in what the advice takes away; None where that was not told.
        gone_ms: of a step in all that may go with it, where that is more: the most that the advice
            can buy.
        place: what to change; the loop, where that is not known.
    """
    took = percent_of_step(session, took_ms)
    if took is not None:
        evidence = {**evidence, "took_ms_per_step": took_ms, "took_percent_of_step": took}
    compute = computed_percent(session)
    if took is not None and took < OPERATION_SHARE.value:
        advice = f"{advice} Here that takes only {took:.1f} % of the step."
        return meta.finding("informative", advice, evidence=evidence, edit=edit)
    if took is None and compute < least.value:
        advice = f"{advice} Here only {compute:.0f} % of the step is compute."
        return meta.finding("informative", advice, evidence=evidence, edit=edit)
    if waits := input_first(session):
        return meta.finding("informative", waits, evidence=evidence, edit=edit)
    if took is not None and took_ms is not None:
        advice = f"{advice} That takes {exact_time(took_ms)} of each step, {took:.0f} % of it."
    gone = took if gone_ms is None else percent_of_step(session, gone_ms)
    loop = session.diagnosed_loop()
    return meta.finding(
        "fail",
        advice,
        place=place or ((loop.file, loop.line) if loop else None),
        evidence=evidence,
        speedup_at_most=None if gone is None else at_most_without(session, gone),
        edit=edit,
        untried=untried,
    )
