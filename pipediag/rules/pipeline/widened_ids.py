"""Ids that a mapped function replaces by much more: how much, and whether that matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.facts.pipeline import call_name, operations
from pipediag.facts.step import class_percent
from pipediag.rules.relevance import Weight, weigh
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, Widening
from pipediag.vocabulary import Scalar, WideningKind

SHIPPED = Threshold(
    "what leaves the function in a step in place of ids",
    1.0,
    "MB",
    "own choice: to copy 1 MB takes about 0.1 ms",
)
COPIED = Threshold(
    "copies to the device",
    INPUT_WAIT.value,
    "% of the step",
    "own choice, equal to the limit on input wait: below it even all of them gain little",
)


def widened(
    session: Session, kind: WideningKind, labels_alone: bool = False
) -> Iterator[tuple[Operation, Widening]]:
    """Maps of the pipeline whose function hands out such a part, each with the largest."""
    for op in operations(session, "map"):
        made = op.function.widenings if op.function else []
        parts = [one for one in made if one.kind == kind and (one.label or not labels_alone)]
        if parts:
            yield op, max(parts, key=lambda one: one.bytes)


def megabytes_per_step(op: Operation, part: Widening) -> float | None:
    """What the part adds to a step; None where it is not known how many elements one takes."""
    return None if op.elements is None else op.elements * (part.bytes - part.ids_bytes) / 1e6


def matters(session: Session, op: Operation) -> Weight:
    """Whether the step waits for it, or for copies to its device."""
    weight = weigh(session, op)
    copied = class_percent(session, ["device_copy"])
    evidence: dict[str, Scalar] = {**weight.evidence, "device_copy_percent": copied}
    status = "fail" if copied >= COPIED.value else weight.status
    return Weight(status, "" if status == "fail" else weight.sentence, evidence)


def evidence_of(op: Operation, part: Widening) -> dict[str, Scalar]:
    """Bytes of one element before and after, and of a step."""
    return {
        "rows": part.rows,
        "ids_bytes_per_element": part.ids_bytes,
        "shipped_bytes_per_element": part.bytes,
        "shipped_megabytes_per_step": megabytes_per_step(op, part),
    }


def judged(
    meta: Meta,
    session: Session,
    op: Operation,
    part: Widening,
    advice: Callable[[Operation, Widening, float], str],
) -> Finding:
    """What a rule finds of one such operation: large enough, and waited for.

    Args:
        advice: the rule's, by the megabytes that a step ships more.
    """
    megabytes = megabytes_per_step(op, part)
    evidence = evidence_of(op, part)
    if megabytes is None:
        unknown = f"How many elements of {call_name(op)} a step takes was not measured."
        return meta.finding("inconclusive", unknown, op=op, evidence=evidence)
    if megabytes < SHIPPED.value:
        return meta.finding("pass", "", op=op, evidence=evidence)
    weight = matters(session, op)
    evidence = {**evidence, **weight.evidence}
    said = advice(op, part, megabytes)
    if weight.status != "fail":
        return meta.finding(weight.status, f"{said} {weight.sentence}", op=op, evidence=evidence)
    return meta.finding("fail", said, op=op, evidence=evidence)
