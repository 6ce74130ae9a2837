"""Parallel calls whose results wait for each other, to come out in order."""

from __future__ import annotations

from pipediag.rules.graph_ops import PYTHON, uses
from pipediag.rules.interpreter_lock import python_use
from pipediag.rules.plan import call_name, delay_ms, operations, option
from pipediag.rules.relevance import INPUT_WAIT, OPERATION_SHARE, weigh
from pipediag.rules.rule import Meta, Threshold
from pipediag.session.edits import Edit, SetOptions
from pipediag.session.model import Finding, Operation, Session

BUSY = Threshold(
    "CPUs in use",
    80.0,
    "% of those that the process may use",
    "own choice: with busy CPUs nothing stands idle for the order's sake (120 batches/s with and "
    "without it)",
)
META = Meta(
    id="ordered-results",
    name="Ordered results",
    title_failed="Parallel calls hand their results over in order",
    title_informative="Parallel calls hand their results over in order and may wait for it",
    title_passed="The order of results holds nothing up",
    looks_at="Parallel maps and interleaves that keep the order of their elements, where the step "
    "waits for them and CPUs are idle.",
    why="A call that takes long holds back the results of those behind it, and their workers stand "
    "idle. Whether calls differ in length is not seen, so this only informs, and a trial tells.",
    edit="`options.deterministic = False`, where order is free.",
    cost="Elements come in another order in each run, so that runs can't be repeated exactly.",
    prediction="None: how much calls differ in length was not measured.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, BUSY),
    severity="info",
    effect_on_results="same up to order or rounding",
    tried_when_informing=True,
)


def check(session: Session) -> list[Finding]:
    """One finding on the parallel operation that adds most to the step."""
    ordered = [op for op in operations(session, "map", "interleave") if _in_order(session, op)]
    if not ordered:
        return [META.finding("not-applicable", "No parallel operation keeps the order.")]
    return [_finding(session, max(ordered, key=lambda op: delay_ms(session, op) or 0.0))]


def _in_order(session: Session, op: Operation) -> bool:
    calls = op.parameters.get("num_parallel_calls")
    parallel = calls not in (None, 1) or (op.parallelism or 1) > 1
    asked = op.parameters.get("deterministic")
    free = option(session, "deterministic")
    return parallel and asked is None and (free is None or free[1] is not False)


def _finding(session: Session, op: Operation) -> Finding:
    assert session.host is not None
    busy = 100.0 * session.host.cores_busy / session.host.cores_allowed
    weight = weigh(session, op)
    evidence = {**weight.evidence, "cpus_in_use_percent": busy}
    if weight.status == "inconclusive":
        return META.finding("inconclusive", weight.sentence, op=op, evidence=evidence)
    if weight.status != "fail" or busy >= BUSY.value or _holds_the_lock(session, op):
        return META.finding("pass", "", op=op, evidence=evidence)
    advice = (
        f"The results of {call_name(op)} come out in order, so that a slow call holds up those "
        "behind it. Where order is free: `options.deterministic = False`."
    )
    edit = Edit(META.id, "deterministic = False", (SetOptions({"deterministic": False}),))
    return META.finding("informative", advice, op=op, evidence=evidence, edit=edit)


def _holds_the_lock(session: Session, op: Operation) -> bool:
    """Whether calls run in turn anyway, as they share the interpreter lock."""
    return bool(uses(op.function, PYTHON)) and python_use(session, op).work == "holds the lock"
