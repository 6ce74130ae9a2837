"""Batches made on other hosts by a tf.data service: what is left where nothing cheaper helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.pipeline import (
    call_name,
    chain,
    last_before_prefetch,
    option,
    upstream,
    uses,
)
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Rule, known
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.tensorflow_names import CACHES, LOOKUP, PYTHON_OPERATIONS, VARIABLES

_COUNTS = frozenset(
    "take skip shard enumerate window take_while scan group_by_window unique counter".split()
)
"""Kinds that count or compare elements: each worker would do so in its own share."""
_OF_THIS_PROCESS = PYTHON_OPERATIONS | LOOKUP | VARIABLES

RULE = Rule(
    id="input-service",
    title="Make the batches on other hosts",
    why="A pipeline that has all of this host's CPUs at work can be made faster by more hosts "
    "alone. A tf.data service runs it in workers elsewhere, which send whole batches.",
    fix="End the part that other hosts can make with `dataset.apply(tf.data.experimental.service."
    "distribute(...))`: docs/workers.md shows how. By `ShardingPolicy.DYNAMIC` an example is used "
    "at most once in an epoch, in another order, and each worker's last batch may be smaller.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_BOUND,),
    effect="same up to order or rounding",
    frees=("input_wait",),
    untried="It needs other hosts.",
)


@RULE.found_by
def _at_the_last_place(session: Session) -> Iterable[Finding]:
    loop, last = session.diagnosed_loop(), last_before_prefetch(session)
    weight = weigh_input(session)
    alone = session.environment.worker is None and loop is not None and loop.replicas == 1
    if weight.status != "fail" or not alone or last is None:
        return
    if known(session.breakdown)["input_wait"].ci95_percent[0] < INPUT_BOUND.value:
        return
    own = [op for op in chain(session.ops, last) if not (op.made_by_framework or op.helper)]
    place = next((op for op in own if _can_be_sent(session, op)), None)
    work = session.operation(known(session.pipeline).bottleneck_op_id)
    # The costly part, or what holds it, has to be a part of what is sent.
    ends = {work.id, work.inside_function_of} if work is not None else set()
    if place is None or (ends and ends.isdisjoint(_ids(session, place))):
        return
    shuffled = any(op.kind == "shuffle" for op in session.ops)
    also = "" if shuffled else ", and examples may come in another order"
    yield RULE.finding(
        "informative",
        f"Have a tf.data service make all up to {call_name(place)}, if other hosts can run its "
        f"workers{also}: `dataset.apply(tf.data.experimental.service.distribute(...))` behind it. "
        "Files must have the same names on those hosts; docs/workers.md shows how to start them.",
        op=place,
        weight=weight,
    )


def _ids(session: Session, place: Operation) -> set[str]:
    return {op.id for op in (place, *upstream(session, place))}


def _can_be_sent(session: Session, place: Operation) -> bool:
    """Return True if other processes make the same of all up to a place, but for the order."""
    if (given := option(session.pipeline, "deterministic")) is not None and given[1] is True:
        return False
    ids = _ids(session, place)
    sent = [op for op in session.ops if op.id in ids or op.inside_function_of in ids]
    return not any(map(_stays_here, sent))


def _stays_here(op: Operation) -> bool:
    """Return True if it needs this process, goes by the number or the order of all elements, or
    reads from several datasets, whose shares would not fit together."""
    fixed = op.parameters.get("seed") is not None
    fixed = fixed or op.parameters.get("reshuffle_each_iteration") is False
    return (
        bool(op.calls_python or uses(op.function, _OF_THIS_PROCESS))
        or op.kind in (*CACHES, *_COUNTS)
        or len(op.parent_ids) > 1
        or (op.kind == "shuffle" and fixed)
    )


def last_resort(
    session: Session, findings: Sequence[Finding], *, failed: bool = False
) -> list[Finding]:
    """Return what a tf.data service would do for an input-bound loop.

    Nothing where a rule has an edit for it, which is cheaper, unless these `failed` to help.
    """
    slow = session.verdict.severity in ("moderate", "high")
    if not slow or session.verdict.bottleneck != "input":
        return []
    cheaper = any(
        one.status == "fail" and one.edit is not None and one.edit.loop_id is None
        for one in findings
        if not (failed or one.about_results)
    )
    there = any(one.rule == RULE.id for one in findings)
    return [] if there or cheaper else RULE.findings(session)
