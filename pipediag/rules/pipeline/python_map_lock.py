"""Python in a map that holds the interpreter lock, so that no parallel call gets around it."""

from __future__ import annotations

from pipediag.facts.graph_ops import calls_python
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import call_name, measured_at, operations
from pipediag.facts.python_work import (
    CPU_OF_CALLS,
    LOCK,
    SEEN,
    PythonUse,
    hottest_line_sentence,
    python_use,
)
from pipediag.facts.step import class_ms
from pipediag.rules.bounds import less_input
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
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
    edit="Call the function in a pool of processes, which share no lock; or write it in "
    "TensorFlow operations; or do its work once beforehand and store it.",
    cost="Processes take memory each, start slowly and copy what goes in and out: the function "
    "must be at the top level of a module that can be imported without training, its arguments "
    "small against its work. A rewritten one must be compared; stored results go stale when "
    "the code changes.",
    bound="Of a pool of processes, one a CPU: what input costs over the number of CPUs, no "
    "less than all CPU time spread over them, and the rest of the step. What crosses between "
    "processes is left out.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, CPU_OF_CALLS, SEEN, LOCK),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
    untried="It needs the function in processes of its own, or rewritten: pipediag starts no "
    "process that would load the script again.",
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
    return META.finding(
        weight.status,
        advice,
        op=op,
        evidence=evidence,
        speedup_at_most=_at_most(session),
    )


def _at_most(session: Session) -> float | None:
    """Of a process for each CPU."""
    count = cpus(session)
    if count <= 1:
        return None
    input_ms = class_ms(session, ["input_wait"])
    return less_input(session, input_ms * (1 - 1 / count), on_cpu=True)


def _advice(session: Session, op: Operation) -> str:
    calls = op.parameters.get("num_parallel_calls")
    given = f" (it has num_parallel_calls={calls}, and still one runs at a time)" if calls else ""
    return (
        f"The Python behind {call_name(op)}{given} needs processes, which share no lock: "
        f"{_pool(op, max(2, int(cpus(session))))} Or rewrite it in TensorFlow operations, or run "
        f"it once beforehand and read the result.{hottest_line_sentence(session)}"
    )


def _pool(op: Operation, count: int) -> str:
    """Code to paste: a pool, and the function called in it."""
    name = _name(op)
    return (
        f"`pool = concurrent.futures.ProcessPoolExecutor({count}, "
        'mp_context=multiprocessing.get_context("spawn"))`, and in the map '
        f"`tf.numpy_function(lambda *x: pool.submit({name}, *x).result(), ...)` with "
        f"`num_parallel_calls={count}`. `{name}` must be at the top level of a module, best of one "
        "that does not import TensorFlow; what makes the pool and trains stands below "
        "`if __name__ == '__main__':`."
    )


def _name(op: Operation) -> str:
    """The function as a module would offer it; one without a name of its own is given one."""
    names = op.function.python_function_names if op.function else []
    last = names[0].rpartition(" ")[2].rpartition(".")[2] if names else ""
    return last if last.isidentifier() else "f"
