"""Parallel calls that wait, held back by a thread pool of one thread a CPU."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import pool_size
from pipediag.facts.pipeline import call_name, measured_at, operations, place_name
from pipediag.facts.python_work import CPU_OF_CALLS, LOCK, SEEN, python_use
from pipediag.rules.bounds import less_input
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="waiting-map-pool",
    name="Thread pool of a waiting map",
    title_failed="Parallel calls that mostly wait are held back by the thread pool",
    title_passed="The thread pool is large enough for calls that wait",
    looks_at="Parallel maps whose Python mostly waits (sleep, network, disk), and the size of the "
    "pool they run on.",
    why="tf.data's pool has one thread a CPU, and a waiting call keeps its thread: 16 calls on two "
    "CPUs gave 49 batches/s, and 269 with a pool of 16.",
    edit="`options.threading.private_threadpool_size = 16`, or `map(..., "
    "use_unbounded_threadpool=True)`.",
    cost="More requests at once to whatever is waited for, and a little memory for each thread.",
    bound="As many calls wait at once as the pool has threads.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, CPU_OF_CALLS, LOCK, SEEN),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
)


def check(session: Session) -> list[Finding]:
    """One finding for each parallel map that calls Python."""
    maps = [op for op in operations(session, "map") if calls_python(op) and _parallel(op)]
    if not maps:
        return [META.finding("not-applicable", "No parallel map calls Python.")]
    return [_finding(session, op) for op in maps]


def _parallel(op: Operation) -> bool:
    return op.parameters.get("num_parallel_calls") not in (None, 1)


def _finding(session: Session, op: Operation) -> Finding:
    use = python_use(session, op)
    pool = pool_size(session, op)
    evidence = {**use.evidence, "python": use.work, "pool_threads": pool}
    if use.work == "unclear":
        advice = f"How the Python behind {call_name(op)} spends its time could not be measured."
        return META.finding("inconclusive", advice, op=op, evidence=evidence)
    if use.work != "waits" or pool is None or pool >= WAITING_CALLS:
        return META.finding("pass", "", op=op, evidence=evidence)
    weight = weigh(session, op, _pooled_delay_ms(session, op, pool))
    advice = (
        f"Add `options.threading.private_threadpool_size = {WAITING_CALLS}` with "
        f"`ds.with_options(options)`, and `num_parallel_calls={WAITING_CALLS}`. The calls of "
        f"{call_name(op)} mostly wait, and only {pool} run at once."
    )
    return META.finding(
        weight.status,
        advice if weight.status == "fail" else weight.sentence,
        op=op,
        evidence={**weight.evidence, **evidence},
        speedup_at_most=_at_most(session, op, pool),
        edit=_edit(op),
    )


def _edit(op: Operation) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"{WAITING_CALLS} threads and {WAITING_CALLS} parallel calls for the "
        f"{place_name(op)}",
        changes=(
            SetParameters(op.id, {"num_parallel_calls": WAITING_CALLS}),
            SetOptions({"threading.private_threadpool_size": WAITING_CALLS}),
        ),
    )


def _pooled_delay_ms(session: Session, op: Operation, pool: int) -> float | None:
    """What the map adds to a step when only as many calls run as the pool has threads."""
    self_ms = measured_at(session, op).self_ms_per_step
    return None if self_ms is None else self_ms / pool


def _at_most(session: Session, op: Operation, pool: int) -> float | None:
    delay = _pooled_delay_ms(session, op, pool)
    if delay is None:
        return None
    return less_input(session, delay * (1 - pool / WAITING_CALLS), on_cpu=False)
