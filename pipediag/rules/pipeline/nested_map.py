"""A map inside the function of flat_map or interleave, which TensorFlow never makes parallel."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, costlier, operations, place_name
from pipediag.rules.bounds import PARALLEL_CALLS, parallel
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="nested-map",
    name="Map within flat_map or interleave",
    title_failed="A map within flat_map or interleave is never made parallel",
    title_passed="No map is hidden within flat_map or interleave",
    looks_at="Maps that were made by the function of a flat_map or interleave, without "
    "num_parallel_calls, where the outer operation runs one call at a time as well.",
    why="TensorFlow makes maps on the main path parallel; those within another operation's "
    "function stay sequential.",
    edit="Move the map behind the flat_map or interleave. A trial gives it num_parallel_calls "
    "where it stands, as moving it means rewriting the outer function.",
    cost="A function that needs to know which file it reads must get that as part of the element.",
    bound=PARALLEL_CALLS,
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
)


def check(session: Session) -> list[Finding]:
    """One finding for each nested serial map."""
    nested = [
        (op, outer) for op in operations(session, "map") if (outer := _serial_around(session, op))
    ]
    if not nested:
        return [META.finding("pass", "")]
    return [_finding(session, op, outer) for op, outer in nested]


def _serial_around(session: Session, op: Operation) -> Operation | None:
    """The operation whose function makes this map, where both run one call at a time."""
    outer = session.operation(op.inside_function_of)
    if outer is None or outer.kind not in ("flat_map", "interleave"):
        return None
    serial = all(o.parameters.get("num_parallel_calls") in (None, 1) for o in (op, outer))
    return outer if serial else None


def _finding(session: Session, op: Operation, outer: Operation) -> Finding:
    costs = costlier(session, op, outer)
    weight = weigh(session, costs)
    name = call_name(outer)
    advice = f"Move {call_name(op)} behind {name}, where TensorFlow can run it in parallel."
    return META.finding(
        weight.status,
        advice if weight.status == "fail" else weight.sentence,
        op=op,
        evidence=weight.evidence,
        speedup_at_most=parallel(session, costs, cpus(session), on_cpu=True),
        edit=_edit(op, name),
    )


def _edit(op: Operation, outer: str) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
        caveat=f"Measured with parallel calls on the map where it stands, not behind {outer}.",
    )
