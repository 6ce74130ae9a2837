"""Python in a map that holds the interpreter lock, so that no parallel call gets around it."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.pipeline import call_name, measured_at, operations
from pipediag.facts.python_work import (
    CPU_OF_CALLS,
    LOCK,
    SEEN,
    PythonUse,
    hottest_line_sentence,
    python_use,
)
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta, Prediction
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation

META = Meta(
    id="python-map-lock",
    name="Python map and the interpreter lock",
    title_failed="Python in a map holds the interpreter lock, so more parallel calls won't help",
    title_passed="Python in maps leaves the interpreter lock free",
    looks_at="Maps that call Python (py_function, numpy_function): the CPU time of the data "
    "threads, how often stack samples meet the function, and how long a thread that wakes must "
    "wait for the interpreter lock.",
    why="Only one thread runs Python at a time: num_parallel_calls above 1 gained nothing on a "
    "computing function (55.7, 56.2 and 51.3 batches/s with 1, 2 and 16 calls), while one that "
    "sleeps or reads gains with every call.",
    edit="Write the function in TensorFlow operations, or do its work once beforehand and store "
    "it.",
    cost="The code must be rewritten and compared; storing results takes disk space and goes stale "
    "when the code changes.",
    prediction="None: what the rewritten function costs is not known; the ceiling is the most.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, CPU_OF_CALLS, SEEN, LOCK),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    untried="It needs the function rewritten in TensorFlow operations; pipediag can't do that for "
    "you.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each map that calls Python."""
    maps = [op for op in operations(session, "map") if calls_python(op)]
    if not maps:
        return [META.finding("not-applicable", "No map calls Python while training runs.")]
    return [_finding(session, op, python_use(session, op)) for op in maps]


def _finding(session: Session, op: Operation, use: PythonUse) -> Finding:
    if use.work == "unclear":
        advice = f"How the Python behind {call_name(op)} spends its time could not be measured."
        return META.finding("inconclusive", advice, op=op, evidence=use.evidence)
    if use.work != "holds the lock":
        return META.finding("pass", "", op=op, evidence={**use.evidence, "python": use.work})
    # Calls that wait for one lock run in turn, so their time is not to be divided by their number.
    weight = weigh(session, op, measured_at(session, op).self_ms_per_step)
    evidence = {**weight.evidence, **use.evidence}
    advice = _advice(session, op) if weight.status == "fail" else weight.sentence
    missing = Prediction(None, "What the function would cost in TensorFlow operations is unknown.")
    return META.finding(weight.status, advice, op=op, evidence=evidence, own_prediction=missing)


def _advice(session: Session, op: Operation) -> str:
    calls = op.parameters.get("num_parallel_calls")
    given = f" (it has num_parallel_calls={calls}, and still one runs at a time)" if calls else ""
    return (
        f"Rewrite the Python behind {call_name(op)}{given} in TensorFlow operations, or run it "
        f"once beforehand and read the result.{hottest_line_sentence(session)}"
    )
