"""A map that TensorFlow keeps sequential because its function is stateful."""

from __future__ import annotations

from typing import NamedTuple

from pipediag.facts.graph_ops import calls_python, draws_random, only_looks_up, uses
from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus, pool_size
from pipediag.facts.pipeline import call_name, operations, place_name
from pipediag.facts.python_work import CPU_OF_CALLS, LOCK, SEEN, PythonUse, python_use
from pipediag.rules.bounds import PARALLEL_CALLS, parallel
from pipediag.rules.pipeline.waiting_calls import WAITING_CALLS
from pipediag.rules.relevance import weigh
from pipediag.rules.rule import Meta
from pipediag.session.edits import AUTOTUNE, Change, Edit, SetOptions, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import LOOKUP, PYTHON_OPERATIONS, VARIABLES

OVERLAPPING = (
    "calls overlap, so that random draws land on other elements, side effects happen in another "
    "order, and a function that is not thread-safe breaks"
)
OVERLAPS = Threshold(
    "waiting of a function's calls",
    20.0,
    "% of the time in which a call is in flight",
    "own choice: from there on more calls than CPUs have something to overlap; a trial decides",
)
META = Meta(
    id="serial-stateful-map",
    name="Serial stateful map",
    title_failed="A stateful map runs one call at a time",
    title_passed="No stateful map is left serial",
    looks_at="Maps without num_parallel_calls whose function is stateful: it calls Python, looks "
    "up a table, draws random numbers or reads a variable.",
    why="tf.data makes a map parallel by itself only if its function is stateless; a stateful one "
    "stays sequential unless num_parallel_calls is given, whatever AUTOTUNE does elsewhere.",
    edit="Give `num_parallel_calls=tf.data.AUTOTUNE`; for Python that waits, a number of calls and "
    "a pool of that size; for random numbers, use tf.random.stateless_* with a seed per element "
    "too.",
    cost=f"Elements keep their order, but {OVERLAPPING}.",
    bound=PARALLEL_CALLS
    + " For Python that waits, 16 calls on a pool of 16 threads; for Python that holds the lock, "
    "none.",
    needs=("loop", "pipeline", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, CPU_OF_CALLS, SEEN, LOCK, OVERLAPS),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait",),
)


class Remedy(NamedTuple):
    advice: str
    at_most: float | None
    edit: Edit


def check(session: Session) -> list[Finding]:
    """One finding for each serial stateful map."""
    maps = [op for op in operations(session, "map") if op.inside_function_of is None]
    if not maps:
        return [META.finding("not-applicable", "The pipeline has no map.")]
    serial = [op for op in maps if is_serial_and_stateful(op)]
    if not serial:
        return [META.finding("pass", "", evidence={"maps": len(maps)})]
    return [_finding(session, op) for op in serial]


def is_serial_and_stateful(op: Operation) -> bool:
    """Whether TensorFlow runs this map's calls one after the other because they keep state."""
    given = op.parameters.get("num_parallel_calls")
    return op.function is not None and op.function.stateful and given in (None, 1)


def _finding(session: Session, op: Operation) -> Finding:
    assert op.function is not None
    python = calls_python(op)
    use = python_use(session, op) if python else None
    weight = weigh(session, op)
    evidence = {
        **weight.evidence,
        **(use.evidence if use else {}),
        "stateful_because": reason(op.function),
        "parallelism": op.parallelism,
        "cpus": cpus(session),
    }
    if use is not None and use.work == "holds the lock":
        advice = "More parallel calls would not help here: see python-map-lock."
        return META.finding("informative", advice, op=op, evidence=evidence)
    remedy = _remedy(session, op, use)
    advice = remedy.advice if weight.status == "fail" else weight.sentence
    return META.finding(
        weight.status,
        advice,
        op=op,
        evidence=evidence,
        speedup_at_most=remedy.at_most,
        effect="same results" if only_looks_up(op.function) else None,
        edit=remedy.edit,
    )


def _remedy(session: Session, op: Operation, use: PythonUse | None) -> Remedy:
    if use is not None and use.waits_percent >= OVERLAPS.value:
        return Remedy(
            f"Give {call_name(op)} `num_parallel_calls={WAITING_CALLS}` and the dataset as many "
            f"threads: `options.threading.private_threadpool_size = {WAITING_CALLS}`, since "
            "TensorFlow's own pool has one thread a CPU. Its function waits for "
            f"{use.waits_percent:.0f} % of its time.",
            parallel(session, op, WAITING_CALLS, on_cpu=False),
            _many_calls(session, op),
        )
    advice = (
        f"Give {call_name(op)} `num_parallel_calls=tf.data.AUTOTUNE`: TensorFlow keeps it serial "
        f"because it uses {reason(op.function)}."
    )
    if draws_random(op.function):
        advice += " Use tf.random.stateless_* with a seed for each element to keep runs repeatable."
    if use is not None and use.work == "unclear":
        missing = "Whether its Python holds the interpreter lock was not measured."
        return Remedy(f"{advice} {missing}", None, _tuned_calls(op))
    return Remedy(advice, parallel(session, op, cpus(session), on_cpu=True), _tuned_calls(op))


def _many_calls(session: Session, op: Operation) -> Edit:
    """Calls by a fixed number, and as many threads to wait on where there are fewer."""
    changes: tuple[Change, ...] = (SetParameters(op.id, {"num_parallel_calls": WAITING_CALLS}),)
    label = f"{WAITING_CALLS} parallel calls on the {place_name(op)}"
    pool = pool_size(session, op)
    if pool is not None and pool < WAITING_CALLS:
        changes += (SetOptions({"threading.private_threadpool_size": WAITING_CALLS}),)
        label += f", on {WAITING_CALLS} threads"
    return Edit(f"{META.id}:{op.id}", label, changes)


def _tuned_calls(op: Operation) -> Edit:
    return Edit(
        id=f"{META.id}:{op.id}",
        label=f"num_parallel_calls=AUTOTUNE on the {place_name(op)}",
        changes=(SetParameters(op.id, {"num_parallel_calls": AUTOTUNE}),),
    )


def reason(function: OperationFunction | None) -> str:
    """Which kinds of operation make the function stateful, in words."""
    kinds: list[str] = []
    if python := uses(function, PYTHON_OPERATIONS):
        kinds.append("Python (" + ", ".join(python) + ")")
    if uses(function, LOOKUP):
        kinds.append("a table lookup")
    if draws_random(function):
        kinds.append("random numbers")
    elif uses(function, VARIABLES):
        kinds.append("a variable")
    return " and ".join(kinds) or "a stateful operation"
