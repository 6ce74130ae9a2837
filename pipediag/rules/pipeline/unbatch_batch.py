"""Batches that are taken apart only to be put together again."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name, delay_ms, operations, place_name
from pipediag.rules.bounds import less_input
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Change, Edit, Remove, Replace
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="unbatch-batch",
    name="Unbatch and batch",
    title_failed="Batches are taken apart only to be batched again",
    title_passed="No batch is taken apart for nothing",
    looks_at="An unbatch with a batch right behind it, what both cost, and the size of the batches "
    "above.",
    why="Each element is copied by itself, twice. `rebatch` cuts batches to another size in one go "
    "(5682 batches/s in place of 4219); where the size stays, nothing needs doing.",
    edit="`.rebatch(n)` in place of both, or neither where the size is the same.",
    cost="None: the batches are the same.",
    bound="The times of both fall away where the size stays; none for a rebatch, "
    "whose cost was not measured.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    tried_when_informing=True,
)

_PASSED_ON = ("map", "prefetch", "with_options")


def check(session: Session) -> list[Finding]:
    """One finding for each unbatch with a batch right behind it."""
    pairs = [
        (op, batch)
        for batch in operations(session, "batch")
        for op in operations(session, "unbatch")
        if batch.parent_ids == [op.id] and isinstance(batch.parameters.get("batch_size"), int)
    ]
    if not pairs:
        return [META.finding("not-applicable", "No batch stands right behind an unbatch.")]
    return [_finding(session, op, batch) for op, batch in pairs]


def _finding(session: Session, op: Operation, batch: Operation) -> Finding:
    delays = [delay_ms(session, op), delay_ms(session, batch)]
    delay = None if delays[0] is None else sum(each or 0.0 for each in delays)
    weight = weigh(session, op, delay)
    size, first = batch.parameters.get("batch_size"), _first_batch(session, op)
    needless = first is not None and _parameters(first) == _parameters(batch)
    both = f"{call_name(op)} and {call_name(batch)}"
    advice = f"Drop {both}." if needless else f"Write `.rebatch({size})` in place of {both}."
    return META.finding(
        weight.to_try,
        advice if weight.status == "fail" else weight.sentence,
        op=op,
        evidence={
            **weight.evidence,
            "batch_size": size,
            "batch_size_above": first.parameters.get("batch_size") if first else None,
        },
        speedup_at_most=_at_most(session, delay, needless),
        edit=_edit(op, batch, needless) if weight.worth_trying else None,
    )


def _first_batch(session: Session, op: Operation) -> Operation | None:
    """The batch whose batches the unbatch takes apart, with at most maps of batches between."""
    above = session.operation(op.parent_ids[0]) if len(op.parent_ids) == 1 else None
    while above is not None and above.kind in _PASSED_ON and len(above.parent_ids) == 1:
        above = session.operation(above.parent_ids[0])
    return above if above is not None and above.kind == "batch" else None


def _parameters(batch: Operation) -> tuple[object, bool]:
    return batch.parameters.get("batch_size"), bool(batch.parameters.get("drop_remainder"))


def _at_most(session: Session, delay: float | None, needless: bool) -> float | None:
    if not needless or delay is None:
        return None
    return less_input(session, delay, on_cpu=False)


def _edit(op: Operation, batch: Operation, needless: bool) -> Edit:
    size, drop_remainder = _parameters(batch)
    assert isinstance(size, int)
    changes: tuple[Change, ...]
    if needless:
        changes = (Remove(op.id), Remove(batch.id))
        label = f"without the {place_name(op)} and the {place_name(batch)}"
    else:
        parameters = {"batch_size": size, "drop_remainder": drop_remainder}
        changes = (Remove(op.id), Replace(batch.id, "rebatch", {**parameters}))
        label = f"rebatch({size}) in place of the {place_name(op)} and the {place_name(batch)}"
    return Edit(f"{META.id}:{op.id}", label, changes, check="equal")
