"""A filter that drops elements which a costly map has just made."""

from __future__ import annotations

from pipediag.facts.graph_ops import draws_random
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name, delay_ms, operations, place_name
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, Move
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="late-filter",
    name="Late filter",
    title_failed="A filter drops what a costly map has just made",
    title_passed="No filter drops costly work",
    looks_at="Filters right behind a map, the part of the map's time that goes to elements which "
    "they drop, and whether elements are as large before the map as behind it.",
    why="The map's work on what is dropped is lost: with the filter first a pipeline gave 131 "
    "batches/s in place of 76. It is right only where the map leaves alone what the filter looks "
    "at, which the plan does not tell: so this only informs, and a trial compares the batches "
    "before it measures.",
    edit="Put the filter above the map.",
    cost="The filter must work on what stands above the map.",
    bound="None: whether they can be swapped is known only by trying.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="info",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding for each filter that reads from a map."""
    filters = [
        (op, above) for op in operations(session, "filter") if (above := _map_above(session, op))
    ]
    if not filters:
        return [META.finding("not-applicable", "No filter stands right behind a map.")]
    return [_finding(session, op, above) for op, above in filters]


def _map_above(session: Session, op: Operation) -> Operation | None:
    above = session.operation(op.parent_ids[0]) if op.parent_ids else None
    return above if above is not None and above.kind == "map" else None


def _finding(session: Session, op: Operation, above: Operation) -> Finding:
    delay, dropped = delay_ms(session, above), _dropped(op, above)
    weight = weigh(session, above, delay * dropped if delay and dropped else delay)
    evidence = dict(weight.evidence)
    if not weight.worth_trying:
        return META.finding("pass", "", op=op, evidence=evidence)
    if draws_random(above.function):
        advice = f"{call_name(above)} draws random numbers, which the filter may look at."
        return META.finding("pass", advice, op=op, evidence=evidence)
    drops = "some" if dropped is None else f"{100.0 * dropped:.0f} %"
    evidence["dropped_percent"] = None if dropped is None else 100.0 * dropped
    advice = (
        f"{call_name(op)} drops {drops} of what {call_name(above)} makes. If it looks at nothing "
        "that the map changes, put it above the map."
    )
    edit = _edit(session, op, above)
    return META.finding("informative", advice, op=op, evidence=evidence, edit=edit)


def _dropped(op: Operation, above: Operation) -> float | None:
    """The part of the map's elements that the filter does not hand on."""
    if op.elements is None or not above.elements:
        return None
    return max(0.0, 1.0 - op.elements / above.elements)


def _edit(session: Session, op: Operation, above: Operation) -> Edit | None:
    """The filter above the map; None where the map's elements are of another size than its own."""
    before = session.operation(above.parent_ids[0]) if len(above.parent_ids) == 1 else None
    if before is None or above.element_bytes is None:
        return None
    if before.element_bytes != above.element_bytes:
        return None
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"{place_name(op)} moved above the {place_name(above)}",
        changes=(Move(op.id, before.id),),
        check="equal",
    )
