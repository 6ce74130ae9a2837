"""Python that makes the input: generators, PyDatasets, and what runs while tracing."""

from __future__ import annotations

from pathlib import Path

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    call_name,
    costlier,
    following_batch,
    operations,
    place_name,
    upstream,
    uses,
)
from pipediag.facts.python_callables import (
    WAITS_FIRST,
    generator_of_keras,
    has_workers,
    hottest_line_sentence,
    pydataset,
    python_calls,
    python_evidence,
    running_line,
    waits_first,
)
from pipediag.rules.parallel_calls import WAITING_CALLS
from pipediag.rules.reading import opened_at_once, opens_in_turn
from pipediag.rules.relevance import weigh, weigh_input
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Change, Edit, Remove, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.host import hot_line
from pipediag.session.loops import KerasUse
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import PYTHON_ADAPTERS, PYTHON_OPERATIONS, random_operations

_WHAT_PROCESSES_NEED = (
    "Keras forks them on Linux, so `__getitem__` must not call TensorFlow; where they are spawned "
    "the dataset must pickle, and the script needs `if __name__ == '__main__':`"
)
PYTHON_INPUT = Meta(
    id="python-input",
    name="Python that makes the input",
    title_failed="Python makes batches more slowly than training takes them",
    title_passed="The Python that makes the input keeps up with the training",
    why="One thread calls a generator, or `__getitem__`, for one element after the other. "
    "Prefetch and parallel calls behind it do not make that faster, and while it computes it also "
    "takes the GIL from the training loop: a step of 8.3 ms with 9 % input wait fell to 3.0 ms "
    "when its batches were made beforehand.",
    edit="Build whole batches with NumPy or in tf.data. Read several parts of the data at once "
    "(an interleave of generators on 16 threads, or `workers=N` of a PyDataset), which helps as "
    "far as their calls overlap.",
    cost="Elements of several generators alternate, and each holds what it has open. "
    "`__getitem__` is called from several threads at once: an open file, a random generator or a "
    "buffer that it shares must stand that. Processes copy what the dataset holds and start "
    f"slowly. {_WHAT_PROCESSES_NEED}.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, WAITS_FIRST),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("input_wait", "python"),
    untried="It needs the source rewritten, or run in other processes; pipediag can't do that for "
    "you.",
)

_COPIES = 2
_MOST_THREADS = 16
_KERAS_QUEUE = 10
"""Keras's own `max_queue_size`: what workers of a small number are not kept waiting by."""

_OWN_THREADS = SetOptions({"threading.private_threadpool_size": WAITING_CALLS})
_ON_THREADS = (
    f", with `options.threading.private_threadpool_size = {WAITING_CALLS}` by "
    "`ds.with_options(options)`."
)
_REWRITE = "build each batch with whole-array NumPy or in tf.data instead of Python loops"


def check_python_input(session: Session) -> list[Finding]:
    """One finding for each generator, or on the PyDataset of the diagnosed loop."""
    keras = pydataset(session)
    if keras is not None:
        return [_of_pydataset(session, keras)]
    generators = operations(session, "from_generator")
    if generators:
        return [_of_generator(session, op) for op in generators]
    keras = _read_by_keras(session)
    if keras is not None:
        return [_of_generator_of_keras(session, keras)]
    return [PYTHON_INPUT.finding("not-applicable", "The loop's data does not come from Python.")]


def _read_by_keras(session: Session) -> KerasUse | None:
    loop = session.diagnosed_loop()
    keras = loop.keras if loop else None
    return keras if keras and keras.data_adapter in PYTHON_ADAPTERS else None


def _of_generator(session: Session, op: Operation) -> Finding:
    outer = session.operation(op.inside_function_of)
    if outer is not None and not opens_in_turn(outer):
        return PYTHON_INPUT.finding("pass", "Several generators are read at once.", op=op)
    calls = python_calls(op)
    costs = costlier(session, op, outer)
    weight = weigh(session, costs, calls.wall_ms if calls is not None else None)
    batch = following_batch(session, op)
    evidence = {**weight.evidence, **python_evidence(op), "elements_per_step": op.elements}
    if weight.status != "fail":
        status = "pass" if weight.status == "informative" else weight.status
        return PYTHON_INPUT.finding(status, weight.sentence, op=op, evidence=evidence)
    return PYTHON_INPUT.finding(
        "fail",
        _advice(session, op, outer, batch),
        op=op,
        place=running_line(session, op),
        evidence=evidence,
        edit=_side_by_side(op) if outer is None else _at_once_edit(session, op, outer),
    )


def _advice(
    session: Session, op: Operation, outer: Operation | None, batch: Operation | None
) -> str:
    """What was measured, then the ways: what overlaps waits first where the calls were off the CPU
    for a good part of their time."""
    calls = python_calls(op)
    measured = f" {calls.sentence('`next` of it')}" if calls is not None else ""
    side_by_side = _divide(session, op, outer)
    rewrite = _whole_batches(op, batch) or f"{_REWRITE[0].upper()}{_REWRITE[1:]}."
    ways = (side_by_side, rewrite) if waits_first(op) else (rewrite, side_by_side)
    joined = f"{ways[0]} Or {ways[1][0].lower()}{ways[1][1:]}"
    return f"{joined}{measured}{hottest_line_sentence(session)}"


def _whole_batches(op: Operation, batch: Operation | None) -> str | None:
    """Advice for a generator whose single rows are batched behind it."""
    if batch is None:
        return None
    size = batch.parameters.get("batch_size") or "a whole batch of"
    return (
        f"Let the generator of {call_name(op)} yield arrays of {size} rows, with None as first "
        "axis in its output_signature, and drop the `batch`."
    )


def _divide(session: Session, op: Operation, outer: Operation | None) -> str:
    if outer is None:
        return (
            f"Let the generator of {call_name(op)} take a part of the data as argument, and read "
            "several parts at once: `tf.data.Dataset.range(n).interleave(lambda part: "
            "tf.data.Dataset.from_generator(..., args=(part,)), cycle_length=n, "
            f"num_parallel_calls=n)`{_ON_THREADS} Two copies of it read side by side say what that "
            "gains at most."
        )
    count = _at_once(session, outer)
    if outer.kind == "interleave":
        return f"Give {call_name(outer)} `num_parallel_calls={count}`{_ON_THREADS}"
    return (
        f"Replace {call_name(outer)} by `interleave(..., cycle_length={count}, "
        f"num_parallel_calls={count})`{_ON_THREADS}"
    )


def _side_by_side(op: Operation) -> Edit:
    """Two copies: how the source can be divided, only its author knows."""
    copies = Replace(op.id, "interleave", {"cycle_length": _COPIES, "num_parallel_calls": _COPIES})
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"two copies of the {place_name(op)} side by side, on {WAITING_CALLS} threads",
        changes=(copies, _OWN_THREADS),
        caveat="Both copies read all of the data: it says what two halves would gain at most, and "
        "dividing the source is left to you.",
    )


def _at_once_edit(session: Session, op: Operation, outer: Operation) -> Edit:
    count = _at_once(session, outer)
    change, label = opened_at_once(outer, count, count, "generators")
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"{label}, on {WAITING_CALLS} threads",
        changes=(change, _OWN_THREADS),
        caveat="Elements of several generators alternate.",
    )


def _at_once(session: Session, outer: Operation) -> int:
    """As many as there are; waiting takes no CPU, so their number does not bound it."""
    cycle = outer.parameters.get("cycle_length")
    if outer.kind == "interleave" and isinstance(cycle, int) and cycle > 1:
        return cycle
    known = [op.cardinality or 0 for op in upstream(session, outer)]
    return max(2, min([WAITING_CALLS, *(count for count in known if count > 0)]))


def _of_generator_of_keras(session: Session, keras: KerasUse) -> Finding:
    """A Python generator that was given to `fit`."""
    op, weight = generator_of_keras(session), weigh_input(session)
    place, calls = _place(session, keras), python_calls(op)
    evidence = {**weight.evidence, **python_evidence(op)}
    if weight.status != "fail":
        return PYTHON_INPUT.finding("pass", weight.sentence, place=place, evidence=evidence)
    measured = f" {calls.sentence('`next` of it')}" if calls is not None else ""
    advice = f"{_REWRITE[0].upper()}{_REWRITE[1:]}.{measured}{hottest_line_sentence(session)}"
    op_id = op.id if op is not None else None
    return PYTHON_INPUT.finding("fail", advice, op_id=op_id, place=place, evidence=evidence)


def _place(session: Session, keras: KerasUse) -> Place:
    line = hot_line(session.host, "source")
    return (line.file, line.line) if line else (keras.source_file, keras.source_line)


def _of_pydataset(session: Session, keras: KerasUse) -> Finding:
    op, weight = generator_of_keras(session), weigh_input(session)
    place = _place(session, keras)
    evidence = {**weight.evidence, **python_evidence(op)}
    if weight.status != "fail":
        return PYTHON_INPUT.finding("pass", weight.sentence, place=place, evidence=evidence)
    if has_workers(keras):
        advice = f"It is read by {keras.workers} workers already. {_of_one_call(session, keras)}"
        return PYTHON_INPUT.finding("fail", advice, place=place, evidence=evidence)
    workers = _workers(session, op)
    return PYTHON_INPUT.finding(
        "fail",
        _workers_advice(session, keras, op, workers),
        op_id=op.id if op else None,
        place=place,
        evidence=evidence,
        edit=_workers_edit(session, op, keras, workers),
        untried="How Keras reads the PyDataset was not recorded.",
    )


def _workers(session: Session, op: Operation | None) -> int:
    """Waiting takes no CPU, so the CPUs do not bound how many wait at once."""
    if waits_first(op):
        return WAITING_CALLS
    return max(2, min(_MOST_THREADS, int(cpus(session))))


def _of_one_call(session: Session, keras: KerasUse) -> str:
    return f"Make `{keras.source}.__getitem__` cheaper: {_REWRITE}.{hottest_line_sentence(session)}"


def _workers_advice(session: Session, keras: KerasUse, op: Operation | None, workers: int) -> str:
    calls = python_calls(op)
    measured = f" {calls.sentence()}" if calls is not None else ""
    queue = f", max_queue_size={2 * workers}" if 2 * workers > _KERAS_QUEUE else ""
    threads = (
        f"Let several threads call `{keras.source}.__getitem__`, which one does now, batch after "
        f"batch: `super().__init__(workers={workers}{queue})` in the class, whose `__getitem__` "
        "must then stand calls from several at once."
    )
    processes = (
        f"Where that does not help, `use_multiprocessing=True` makes processes of the workers: "
        f"{_WHAT_PROCESSES_NEED}."
    )
    if waits_first(op):
        return f"{threads}{measured} {processes}"
    return f"{_of_one_call(session, keras)}{measured} Or: {threads} {processes}"


def _workers_edit(
    session: Session, op: Operation | None, keras: KerasUse, workers: int
) -> Edit | None:
    """Read by threads; with them, Keras appends no prefetch and leaves tf.data one thread."""
    if op is None:
        return None
    queued = {"max_queue_size": 2 * workers} if 2 * workers > _KERAS_QUEUE else {}
    changes: list[Change] = [Replace(op.id, "PyDataset", {"workers": workers, **queued})]
    behind = [one for one in (session.pipeline.ops if session.pipeline else []) if _ahead(one, op)]
    changes += [Remove(one.id) for one in behind]
    changes.append(SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1}))
    source = Path(keras.source_file).name if keras.source_file else "the script"
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"workers={workers} for the PyDataset `{keras.source}` in {source}",
        changes=tuple(changes),
        caveat="Measured with threads; processes were not tried.",
    )


def _ahead(one: Operation, op: Operation) -> bool:
    return one.kind == "prefetch" and one.made_by_framework and one.parent_ids == [op.id]


TRACE_ONLY_PYTHON = Meta(
    id="trace-only-python",
    name="Python at trace time",
    title_failed="Python in a mapped function runs only while it is traced",
    title_passed="No mapped function relies on Python at trace time",
    why="tf.data traces the function into a graph once and runs the graph. Such Python costs "
    "nothing per element, and a number it drew is the same for every element.",
    edit="Delete it, or use tf.random, tf.print, tf.io where it was meant to act on each element.",
    cost="None, as it does nothing while training runs.",
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


def check_trace_only_python(session: Session) -> list[Finding]:
    """One informative finding for each mapped function with such Python."""
    # Removed operations count too: TensorFlow drops a map that is nothing without its Python.
    ops = session.pipeline.ops if session.pipeline else []
    mapped = [op for op in ops if op.function is not None and not op.made_by_framework]
    found = [_finding(op, op.function) for op in mapped if op.function and _idle(op.function)]
    return found or [TRACE_ONLY_PYTHON.finding("pass", "")]


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
    return TRACE_ONLY_PYTHON.finding(
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
