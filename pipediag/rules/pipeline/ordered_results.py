"""Parallel calls whose results wait for each other, to come out in order."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus, pool_size
from pipediag.facts.pipeline import call_name, delay_ms, operations, option
from pipediag.facts.python_work import CPU_OF_CALLS, LOCK, SEEN, python_use
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

DISK = Threshold(
    "CPU time that waits for the disk",
    5.0,
    "% of the machine's",
    "own choice, equal to the limit on input wait",
)
META = Meta(
    id="ordered-results",
    name="Ordered results",
    title_failed="Parallel calls hand their results over in order",
    title_informative="Calls that wait hand their results over in order",
    title_passed="The order of results holds nothing up",
    looks_at="Parallel maps whose Python mostly waits, on a pool of their own, and parallel "
    "interleaves that read from a disk, where the step waits for them and they keep the order. "
    "Not those that TensorFlow fuses with the batch right behind them.",
    why="A call that takes long holds back the results of those behind it. Calls that wait differ "
    "in length, those that compute hardly do (120 batches/s in either order). By how much is not "
    "seen, so this only informs, and a trial tells. Fused with a batch, each call fills a place "
    "of its own in it, whichever ends first.",
    edit="`options.deterministic = False`, where order is free.",
    cost="Elements come in another order in each run, so that runs can't be repeated exactly.",
    bound="None: how much calls differ in length was not measured.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, CPU_OF_CALLS, SEEN, LOCK, DISK),
    severity="info",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on the waiting operation that adds most to the step."""
    ordered = [op for op in operations(session, "map", "interleave") if _in_order(session, op)]
    if not ordered:
        return [META.finding("not-applicable", "No parallel operation keeps the order.")]
    return [_finding(session, max(ordered, key=lambda op: delay_ms(session, op) or 0.0))]


def _in_order(session: Session, op: Operation) -> bool:
    calls = op.parameters.get("num_parallel_calls")
    parallel = calls not in (None, 1) or (op.parallelism or 1) > 1
    asked = op.parameters.get("deterministic")
    free = option(session, "deterministic")
    kept = asked is None and (free is None or free[1] is not False)
    return parallel and kept and not _fills_batches(session, op)


def _fills_batches(session: Session, op: Operation) -> bool:
    """Whether it was fused with a batch, in which each call fills a place of its own."""
    fused = (session.operation(op_id) for op_id in op.fused_from)
    return any(other is not None and other.kind == "batch" for other in fused)


def _finding(session: Session, op: Operation) -> Finding:
    weight = weigh(session, op)
    if weight.status == "inconclusive":
        return META.finding("inconclusive", weight.sentence, op=op, evidence=weight.evidence)
    if weight.status != "fail" or not _waits(session, op):
        return META.finding("pass", "", op=op, evidence=weight.evidence)
    advice = (
        f"The results of {call_name(op)} come out in order, so that a slow call holds up those "
        "behind it. Where order is free: `options.deterministic = False`."
    )
    edit = Edit(META.id, "deterministic = False", (SetOptions({"deterministic": False}),))
    return META.finding("informative", advice, op=op, evidence=weight.evidence, edit=edit)


def _waits(session: Session, op: Operation) -> bool:
    """Whether calls wait for something outside, and there are threads enough to wait on."""
    if op.kind == "interleave":
        waited = session.host.io_wait_percent if session.host else None
        return waited is not None and waited >= DISK.value
    pool = pool_size(session, op)
    if not calls_python(op) or (pool is not None and pool <= cpus(session)):
        return False
    return python_use(session, op).work == "waits"
