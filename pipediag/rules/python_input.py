"""Python that makes the input: generators, PyDatasets, and what runs while tracing."""

from __future__ import annotations

from functools import partial
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
from pipediag.rules.generators import elements_edit_id
from pipediag.rules.maps import ON_THREADS, WAITING_CALLS
from pipediag.rules.reading import opened_at_once, opens_in_turn
from pipediag.rules.relevance import weigh, weigh_input
from pipediag.rules.rule import Meta
from pipediag.session.edits import Change, Edit, Remove, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import Session, hot_line
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import KerasUse
from pipediag.session.recording import RecordedFunction
from pipediag.tensorflow_names import PYTHON_ADAPTERS, PYTHON_OPERATIONS, random_operations

_WHAT_PROCESSES_NEED = (
    "Keras forks them on Linux, so `__getitem__` must not call TensorFlow; where they are spawned "
    "the dataset must pickle, and the script needs `if __name__ == '__main__':`"
)
PYTHON_INPUT = Meta(
    id="python-input",
    name="Python that makes the input",
    title_failed="Make batches faster than Python does",
    title_passed="The Python that makes the input keeps up with the training",
    why="One thread calls a generator, or `__getitem__`, for one element after the other, and "
    "takes the GIL from the training loop: a step of 8.3 ms with 9 % input wait fell to 3.0 ms.",
    edit="Build whole batches with NumPy or in tf.data. Read several parts of the data at once (an "
    "interleave of generators on 16 threads, or `workers=N` of a PyDataset).",
    cost="Elements of several generators alternate. `__getitem__` must stand calls from several "
    f"threads at once. {_WHAT_PROCESSES_NEED}.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, WAITS_FIRST),
    effect_on_results="same up to order or rounding",
    frees=("input_wait", "python"),
    untried="It needs the source rewritten, or run in other processes.",
)
_COPIES = 2
_MOST_THREADS = 16
_KERAS_QUEUE = 10
"""Keras's own `max_queue_size`: enough for workers of a small number."""
_OWN_THREADS = SetOptions({"threading.private_threadpool_size": WAITING_CALLS})
_REWRITE = "build each batch with whole-array NumPy or in tf.data instead of Python loops"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def check_python_input(session: Session) -> list[Finding]:
    """Return a finding on each generator, or on the PyDataset of the diagnosed loop."""
    keras = pydataset(session)
    if keras is not None:
        return [_of_keras(session, keras, is_pydataset=True)]
    generators = operations(session, "from_generator")
    if generators:
        return [_of_generator(session, op) for op in generators]
    loop = session.diagnosed_loop()
    if loop is not None and loop.keras is not None and loop.keras.data_adapter in PYTHON_ADAPTERS:
        return [_of_keras(session, loop.keras, is_pydataset=False)]
    return [PYTHON_INPUT.finding("not-applicable", "The loop's data does not come from Python.")]


def _of_generator(session: Session, op: Operation) -> Finding:
    outer = session.operation(op.inside_function_of)
    if outer is not None and not opens_in_turn(outer):
        return PYTHON_INPUT.finding("pass", "Several generators are read at once.", op=op)
    calls = python_calls(op)
    wall_ms = calls.wall_ms if calls is not None else None
    weight = weigh(session, costlier(session, op, outer), wall_ms)
    evidence = {**weight.evidence, **python_evidence(op), "elements_per_step": op.elements}
    if weight.status != "fail":
        status = "pass" if weight.status == "informative" else weight.status
        return PYTHON_INPUT.finding(status, weight.sentence, op=op, evidence=evidence)
    batch = following_batch(session, op)
    rewrite = f"{_sentence(_REWRITE)}."
    if batch is not None:
        size = batch.parameters.get("batch_size") or "a whole batch of"
        rewrite = (
            f"Let the generator of {call_name(op)} yield arrays of {size} rows, with None as first "
            "axis in its output_signature, and drop the `batch`."
        )
    # What overlaps waits goes first where the calls were off the CPU for a good part of their time.
    first, second = rewrite, _several_at_once(session, op, outer)
    if waits_first(op):
        first, second = second, first
    measured = f" {calls.sentence('`next` of it')}" if calls is not None else ""
    line = hottest_line_sentence(session)
    return PYTHON_INPUT.finding(
        "fail",
        f"{first} Or {second[0].lower()}{second[1:]}{measured}{line}",
        op=op,
        place=running_line(session, op),
        evidence=evidence,
        edit=_side_by_side(op) if outer is None else _read_at_once(session, op, outer),
    )


def _several_at_once(session: Session, op: Operation, outer: Operation | None) -> str:
    if outer is None:
        return (
            f"Let the generator of {call_name(op)} take a part of the data as argument, and read "
            "several parts at once: `tf.data.Dataset.range(n).interleave(lambda part: "
            "tf.data.Dataset.from_generator(..., args=(part,)), cycle_length=n, "
            f"num_parallel_calls=n)`, with {ON_THREADS}."
        )
    count = _how_many(session, outer)
    if outer.kind == "interleave":
        return f"Give {call_name(outer)} `num_parallel_calls={count}`, with {ON_THREADS}."
    return (
        f"Replace {call_name(outer)} by `interleave(..., cycle_length={count}, "
        f"num_parallel_calls={count})`, with {ON_THREADS}."
    )


def _side_by_side(op: Operation) -> Edit:
    """Return two copies: how the source can be divided, only its author knows."""
    copies = Replace(op.id, "interleave", {"cycle_length": _COPIES, "num_parallel_calls": _COPIES})
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"two copies of the {place_name(op)} side by side, on {WAITING_CALLS} threads",
        changes=(copies, _OWN_THREADS),
        # Elements in stacks are a patch, which copies are not.
        instead_of=elements_edit_id(op),
        caveat="Both copies read all of the data: it says what two halves would gain at most.",
    )


def _read_at_once(session: Session, op: Operation, outer: Operation) -> Edit:
    count = _how_many(session, outer)
    change, label = opened_at_once(outer, count, count, "generators")
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"{label}, on {WAITING_CALLS} threads",
        changes=(change, _OWN_THREADS),
        caveat="Elements of several generators alternate.",
    )


def _how_many(session: Session, outer: Operation) -> int:
    """Return as many as there are; waiting takes no CPU, so their number does not bound it."""
    cycle = outer.parameters.get("cycle_length")
    if outer.kind == "interleave" and isinstance(cycle, int) and cycle > 1:
        return cycle
    known = [op.cardinality or 0 for op in upstream(session, outer)]
    return max(2, min([WAITING_CALLS, *(count for count in known if count > 0)]))


def _of_keras(session: Session, keras: KerasUse, *, is_pydataset: bool) -> Finding:
    """Return the finding on a generator or a PyDataset that was given to `fit`."""
    op, weight = generator_of_keras(session), weigh_input(session)
    line, calls = hot_line(session.host, "source"), python_calls(op)
    finding = partial(
        PYTHON_INPUT.finding,
        op_id=op.id if op is not None else None,
        place=(line.file, line.line) if line else (keras.source_file, keras.source_line),
        evidence={**weight.evidence, **python_evidence(op)},
    )
    if weight.status != "fail":
        return finding("pass", weight.sentence)
    measured = f" {calls.sentence()}" if calls is not None else ""
    hottest = hottest_line_sentence(session)
    if not is_pydataset:
        return finding("fail", f"{_sentence(_REWRITE)}.{measured}{hottest}")
    cheaper = f"Make `{keras.source}.__getitem__` cheaper: {_REWRITE}.{hottest}"
    if has_workers(keras):
        return finding("fail", f"It is read by {keras.workers} workers already. {cheaper}")
    # Waiting takes no CPU, so the CPUs do not bound how many wait at once.
    as_cpus = max(2, min(_MOST_THREADS, int(cpus(session))))
    workers = WAITING_CALLS if waits_first(op) else as_cpus
    queue = 2 * workers if 2 * workers > _KERAS_QUEUE else None
    size = f", max_queue_size={queue}" if queue else ""
    threads = (
        f"Let several threads call `{keras.source}.__getitem__`, which one does now, batch after "
        f"batch: `super().__init__(workers={workers}{size})` in the class."
    )
    processes = (
        "Where that does not help, `use_multiprocessing=True` makes processes of the workers: "
        f"{_WHAT_PROCESSES_NEED}."
    )
    return finding(
        "fail",
        f"{threads}{measured} {processes}"
        if waits_first(op)
        else f"{cheaper}{measured} Or: {threads} {processes}",
        edit=None if op is None else _workers_edit(session, op, keras, workers, queue),
        untried="How Keras reads the PyDataset was not recorded.",
    )


def _workers_edit(
    session: Session, op: Operation, keras: KerasUse, workers: int, queue: int | None
) -> Edit:
    """Return reading by threads; with them, Keras appends no prefetch and leaves tf.data one."""
    queued = {} if queue is None else {"max_queue_size": queue}
    behind = [
        Remove(one.id)
        for one in (session.pipeline.ops if session.pipeline else [])
        if one.kind == "prefetch" and one.made_by_framework and one.parent_ids == [op.id]
    ]
    changes: list[Change] = [Replace(op.id, "PyDataset", {"workers": workers, **queued}), *behind]
    changes.append(SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1}))
    source = Path(keras.source_file).name if keras.source_file else "the script"
    return Edit(
        id=f"{PYTHON_INPUT.id}:{op.id}",
        label=f"workers={workers} for the PyDataset `{keras.source}` in {source}",
        changes=tuple(changes),
        caveat="Measured with threads; processes were not tried.",
    )


TRACE_ONLY_PYTHON = Meta(
    id="trace-only-python",
    name="Python at trace time",
    title_failed="Replace Python that runs only while the function is traced",
    title_passed="No mapped function relies on Python at trace time",
    why="tf.data traces the function into a graph once and runs the graph. Such Python costs "
    "nothing per element, and a number it drew is the same for every element.",
    edit="Delete it, or use tf.random, tf.print, tf.io where it was meant to act on each element.",
    cost="None, as it does nothing while training runs.",
    needs=("loop", "pipeline"),
    severity="info",
    subject="correctness",
    untried="Removing it changes no speed, so there is nothing to measure.",
)
_CLOCKS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")
_IDLE = {"print", "open", "input", "time.sleep", *(f"time.{name}" for name in _CLOCKS)}
_DRAWING = ("numpy.random.", "random.")


def check_trace_only_python(session: Session) -> list[Finding]:
    """Return an informative finding on each mapped function with such Python."""
    # Removed operations count too: TensorFlow drops a map that is nothing without its Python.
    ops = session.pipeline.ops if session.pipeline else []
    mapped = [op for op in ops if op.function is not None and not op.made_by_framework]
    return [_of_idle(op, op.function) for op in mapped if op.function and _idle(op.function)]


def _idle(function: RecordedFunction) -> list[str]:
    if uses(function, PYTHON_OPERATIONS):
        return []
    idle = {name for name in function.python_calls if name in _IDLE}
    if "PrintV2" in function.graph_ops:
        idle -= {"print"}
    return sorted(idle | set(_drawn_once(function)))


def _drawn_once(function: RecordedFunction) -> list[str]:
    stateless = any(name.startswith("StatelessRandom") for name in function.graph_ops)
    if stateless or random_operations(function.graph_ops):
        return []
    return [name for name in function.python_calls if name.startswith(_DRAWING)]


def _of_idle(op: Operation, function: RecordedFunction) -> Finding:
    idle = _idle(function)
    names = "`, `".join(idle)
    advice = (
        f"`{names}` in the function of {call_name(op)} ran while the function was traced and not "
        "for its elements: it costs nothing, and parallel calls can't speed it up."
    )
    if idle == _drawn_once(function):
        advice = (
            f"The {call_name(op)} draws random numbers in Python (`{names}`) once, while it is "
            "traced: every element gets the same ones. Use tf.random.stateless_uniform, or "
            "numpy_function."
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
