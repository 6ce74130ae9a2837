"""Python in a mapped function that ran while tracing and never again."""

from __future__ import annotations

from pipediag.facts.graph_ops import uses
from pipediag.facts.pipeline import call_name
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import PYTHON_OPERATIONS, random_operations

META = Meta(
    id="trace-only-python",
    name="Python at trace time",
    title_failed="Python in a mapped function runs only while it is traced",
    title_passed="No mapped function relies on Python at trace time",
    looks_at="Mapped functions whose code names time.sleep, print, open, clocks, random or NumPy's "
    "random, by what these names are bound to, while their graph calls no Python.",
    why="tf.data traces the function into a graph once and runs the graph. Such Python costs "
    "nothing per element, and a number it drew is the same for every element.",
    edit="Delete it, or use tf.random, tf.print, tf.io where it was meant to act on each element.",
    cost="None, as it does nothing while training runs.",
    bound="None: removing it changes no speed.",
    needs=("loop", "pipeline"),
    thresholds=(),
    severity="info",
    effect_on_results="same results",
    subject="correctness",
    untried="Removing it changes no speed, so there is nothing to measure.",
)

_IDLE = frozenset(
    {
        "print",
        "open",
        "input",
        "time.sleep",
        "time.time",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.monotonic",
        "time.monotonic_ns",
    }
)
_DRAWING = ("numpy.random.", "random.")


def check(session: Session) -> list[Finding]:
    """One informative finding for each mapped function with such Python."""
    # Removed operations count too: TensorFlow drops a map that is nothing without its Python.
    ops = session.pipeline.ops if session.pipeline else []
    mapped = [op for op in ops if op.function is not None and not op.made_by_framework]
    found = [_finding(op, op.function) for op in mapped if op.function and _idle(op.function)]
    return found or [META.finding("pass", "")]


def _idle(function: OperationFunction) -> list[str]:
    if uses(function, PYTHON_OPERATIONS):
        return []
    idle = {name for name in function.python_calls if name in _IDLE}
    if "PrintV2" in function.graph_ops:
        idle -= {"print"}
    return sorted(idle | set(_drawn_once(function)))


def _drawn_once(function: OperationFunction) -> list[str]:
    stateless = any(name.startswith("StatelessRandom") for name in function.graph_ops)
    if stateless or random_operations(function.graph_ops):
        return []
    return [name for name in function.python_calls if name.startswith(_DRAWING)]


def _finding(op: Operation, function: OperationFunction) -> Finding:
    idle = _idle(function)
    if idle == _drawn_once(function):
        advice = (
            f"The {call_name(op)} draws random numbers in Python (`{'`, `'.join(idle)}`) once, "
            "while it is traced: every element gets the same ones. Use "
            "tf.random.stateless_uniform, or numpy_function."
        )
    else:
        advice = (
            f"`{'`, `'.join(idle)}` in the function of {call_name(op)} ran while the function was "
            "traced and not for its elements: it costs nothing, and parallel calls can't speed it "
            "up."
        )
    return META.finding(
        "informative",
        advice,
        op=op,
        evidence={
            "python_calls": ", ".join(idle),
            "traces": function.trace_count,
            "elements_per_step": op.elements,
            "removed_by_tensorflow": op.removed_by_tensorflow,
        },
    )
