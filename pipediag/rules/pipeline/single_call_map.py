"""A map whose num_parallel_calls=1 keeps TensorFlow from running it in parallel."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, operations, place_name
from pipediag.rules.bounds import PARALLEL_CALLS, parallel
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Edit, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="single-call-map",
    name="Map with a single call",
    title_failed="num_parallel_calls=1 keeps a map from running in parallel",
    title_passed="No stateless map is held to one call",
    looks_at="Maps with an explicit num_parallel_calls=1 and a stateless function.",
    why="TensorFlow runs a stateless map in parallel by itself, except where a number was given: 1 "
    "is then kept.",
    edit="Remove the parameter, or give `tf.data.AUTOTUNE`.",
    cost="More calls in flight hold more elements in memory.",
    bound=PARALLEL_CALLS,
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
)


def check(session: Session) -> list[Finding]:
    """One finding for each stateless map with one call."""
    single = [op for op in operations(session, "map") if _is_single(op)]
    if not single:
        return [META.finding("pass", "")]
    return [_finding(session, op) for op in single]


def _is_single(op: Operation) -> bool:
    stateless = op.function is None or not op.function.stateful
    return op.parameters.get("num_parallel_calls") == 1 and stateless


def _finding(session: Session, op: Operation) -> Finding:
    weight = weigh(session, op)
    advice = f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE` in place of 1."
    return META.finding(
        weight.status,
        advice if weight.status == "fail" else weight.sentence,
        op=op,
        evidence={**weight.evidence, "cpus": cpus(session)},
        speedup_at_most=parallel(session, op, cpus(session), on_cpu=True),
        edit=_edit(op),
    )


def _edit(op: Operation) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
    )
