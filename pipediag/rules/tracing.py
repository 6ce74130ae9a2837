"""Functions that are traced or compiled again and again, and arrays that their graphs hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.pipeline import call_name, operations
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.step import class_ms, class_percent, lengths_vary, ranks
from pipediag.rules.relevance import NOTABLE, THRESHOLDS, weigh_rows
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop, Steps
from pipediag.session.model import Session

TRACES_LEFT = 2
"""Traces with `reduce_retracing=True`: one for the first shape, one for all others."""
RETRACES = Threshold(
    "retraces in the loop", 3.0, "retraces", "own choice: a partial batch and new state explain two"
)
COMPILE = Threshold("tracing and compiling", 5.0, "% of the step", "own choice, as for input wait")
RETRACING = Meta(
    id="retracing",
    name="Retracing",
    title_failed="Keep the training function from being traced or compiled again",
    title_passed="The training function is traced once and reused",
    why="A new shape or a new Python number as argument makes tf.function trace anew. Under XLA a "
    "new shape compiles anew without a retrace: 23 lengths cost 245 ms each.",
    edit="Pass tensors instead of Python numbers, reduce_retracing=True; pad to a few fixed "
    "lengths, or jit_compile=False where shapes must vary.",
    cost="A step computes on padding; without XLA some steps are slower.",
    needs=("loop", "steps"),
    thresholds=(RETRACES, COMPILE),
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="It needs the function's calls, or the shapes of its batches, changed in your code.",
)


def check_retracing(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    loop, steps = session.diagnosed_loop(), session.steps
    assert loop is not None
    assert steps is not None
    percent = class_percent(session, ["compile"]) if session.breakdown else None
    retraced = steps.retraces >= RETRACES.value
    if not retraced and (percent is None or percent < COMPILE.value):
        return []
    # The ledger has traces; what XLA compiles for another shape without one is in the steps.
    traced = retraced or _made_anew(loop, steps)
    row = _in_the_run(session, loop) if traced else None
    saved_s = row.seconds * _saved_part(row, TRACES_LEFT) if row is not None else None
    at_most = bound(row.seconds, saved_s) if row is not None and saved_s is not None else None
    if row is None and not lengths_vary(loop.element_spec or ""):
        # Where each length is traced once, nobody knows how many are still to come.
        at_most = bound(steps.mean_ms, class_ms(session, ["compile"]))
    return [
        RETRACING.finding(
            "fail",
            _steps_advice(session, loop, steps),
            place=(loop.file, loop.line),
            evidence={
                "retraces": steps.retraces,
                "trace_count": steps.trace_count,
                "compile_percent": percent,
                "element_spec": loop.element_spec,
            },
            speedup_at_most=at_most,
            part="steps" if row is None else "compile",
            for_run=None if row is None else gain_at_most(session.run, saved_s),
        )
    ]


def _steps_advice(session: Session, loop: Loop, steps: Steps) -> str:
    if _keras_retraces(session, loop):
        return (
            f"Keras {session.environment.keras} traces its step anew in each call of "
            "`train_on_batch`, as 3.0 to 3.6 do: use Keras 3.7 or newer, or `fit` on a dataset."
        )
    names = ", ".join(PurePath(one).name for one in loop.step_functions) or "the training function"
    again = f"it was traced {steps.retraces} times more while the loop was measured"
    if steps.retraces >= RETRACES.value and _shapes_vary(loop):
        return f"Give {names} `reduce_retracing=True`, as its batches vary in length: {again}."
    if steps.retraces >= RETRACES.value:
        return (
            f"Call {names} with tensors in place of Python numbers and with few shapes, or give it "
            f"`reduce_retracing=True`: {again}."
        )
    if _made_anew(loop, steps):
        return f"Make {names} once, outside of the loop: it was traced {steps.trace_count} times."
    return (
        f"Compiling takes {class_percent(session, ['compile']):.0f} % of the step, under XLA once "
        "for each new shape: pad to a few fixed lengths "
        "(`bucket_by_sequence_length(..., pad_to_bucket_boundary=True)`), or compile the model "
        "with `jit_compile=False`."
    )


def _shapes_vary(loop: Loop) -> bool:
    return loop.shapes_vary or lengths_vary(loop.element_spec or "")


def _keras_retraces(session: Session, loop: Loop) -> bool:
    """Return True if the loop calls `train_on_batch` of a Keras that traces it each time.

    Own measurement, natively, of a model of one layer: 21 to 24 ms a call with Keras 3.0.5, 3.5.0
    and 3.6.0, and 0.3 to 0.5 ms with 3.7.0, 3.8.0, 3.9.0 and 3.15.1.
    """
    version = re.match(r"3\.(\d+)", session.environment.keras or "")
    step = "TensorFlowTrainer.make_train_function"
    of_keras = any(step in function for function in loop.step_functions)
    return loop.from_python and of_keras and version is not None and int(version[1]) < 7


def _in_the_run(session: Session, loop: Loop) -> RunPart | None:
    """Return the ledger's row on the traces of the loop's functions, beside the steps."""
    run = session.run
    rows = [row for row in run.parts if row.part == "compile" and row.count] if run else []
    steps = {PurePath(one).name for one in loop.step_functions}
    named = (r for r in rows if f"{PurePath(r.file or '').name}:{r.line} {r.what}" in steps)
    return next(named, None)


def _saved_part(row: RunPart, left: int) -> float:
    """Return the part of its traces that goes where so many remain."""
    return 1.0 - min(1.0, left / (row.count or 1))


def _made_anew(loop: Loop, steps: Steps) -> bool:
    """Return True if functions were traced for the first time again, on batches of one shape."""
    first_traces = steps.trace_count - steps.retraces
    return first_traces > RETRACES.value and not lengths_vary(loop.element_spec or "")


AGAIN = Threshold(
    "traces of a Keras step", 3.0, "times", "own choice: the first and the last batch explain two"
)
OWN_AGAIN = Threshold(
    "traces of an own function", 4.0, "times", "own choice: two batches and one mode explain three"
)
REPEATED_COMPILE = replace(
    RETRACING,
    name="Repeated compiling",
    title_failed="Build each model and function once",
    title_passed="Each function is traced and compiled once or twice",
    why="A new model, a new `compile` and a new tf.function are traced and compiled anew.",
    edit="Build and compile the model once, and start each fold or configuration from the same "
    "weights and a fresh optimizer state. Define a tf.function once, outside of the loop.",
    cost="All of the state has to be set back by hand: weights, the optimizer's variables, and "
    "seeds of dropout; then what differs from round to round, such as the learning rate.",
    needs=("loop", "run"),
    thresholds=(AGAIN, OWN_AGAIN, *THRESHOLDS),
    untried="What compiling took is in the run's ledger; a trial compares steps.",
)


def check_repeated_compile(session: Session) -> list[Finding]:
    """Return a finding on all places where something was traced too often.

    In a run of unknown length, of which no share can be told, it informs of what was seen.
    """
    run = session.run
    assert run is not None
    whole = run.scope == "run"
    if not whole and not run.seen:
        reason = "The ledger is of a part of the training, which doesn't tell how often it comes."
        return [REPEATED_COMPILE.finding("not-applicable", reason, part="compile")]
    repeated = _repeated(run.parts if whole else run.seen)
    saved_s = sum(_saved_s(session, row) for row in repeated)
    percent = 100.0 * saved_s / max(run.total_s, 1e-9)
    if not repeated or (not whole and percent < NOTABLE.value):
        return [REPEATED_COMPILE.finding("pass", part="compile")]
    worst = max(repeated, key=lambda row: row.seconds)
    advice = _run_advice(session, worst, repeated)
    finding = partial(REPEATED_COMPILE.finding, place=(worst.file, worst.line), part="compile")
    if not whole:
        taken_s = sum(row.seconds for row in repeated)
        return [
            finding(
                "informative",
                f"How long the whole training is, is not known; of the {run.total_s:.1f} s that "
                f"were seen of the run, this could have saved {percent:.0f} %. {advice}",
                evidence={
                    "taken_s": taken_s,
                    "savable_percent_of_what_was_seen": percent,
                    "traces": worst.count,
                },
            )
        ]
    weight = weigh_rows(run, repeated, saved_s)
    return [
        finding(
            weight.status,
            weight.before(advice),
            evidence={**weight.evidence, "traces": worst.count},
            speedup_at_most=weight.speedup_at_most,
            for_run=weight.for_run,
        )
    ]


def _repeated(rows: Sequence[RunPart]) -> list[RunPart]:
    def again(row: RunPart) -> bool:
        of_keras = (row.what or "").startswith(("the step of `", "what `"))
        limit = AGAIN if of_keras else OWN_AGAIN
        return row.count is not None and row.count >= limit.value

    return [row for row in rows if row.part == "compile" and again(row)]


def _saved_s(session: Session, row: RunPart) -> float:
    """Return what its traces took, but for those that remain."""
    left = TRACES_LEFT if _loop_on_many_shapes(session, row) is not None else 1
    return row.seconds * _saved_part(row, left)


def _loop_on_many_shapes(session: Session, row: RunPart) -> Loop | None:
    """Return the training loop whose step this function is, if its batches vary in length."""
    step = f":{row.line} {row.what or ''}"
    for loop in session.loops:
        known = any(one.endswith(step) for one in loop.step_functions)
        if loop.role == "training" and known and _shapes_vary(loop):
            return loop
    return None


def _run_advice(session: Session, worst: RunPart, repeated: Sequence[RunPart]) -> str:
    others = {(row.file, row.line) for row in repeated if row.line is not None}
    others -= {(worst.file, worst.line)}
    more = "another place" if len(others) == 1 else f"{len(others)} other places"
    also = f" So is what is called in {more}." if others else ""
    place = (worst.file, worst.line)
    fits = (loop for loop in session.loops if (loop.file, loop.line) == place)
    fit = next((loop for loop in fits if loop.kind == "keras"), None)
    return (_of_a_function(session, worst) if fit is None else _of_a_model(worst, fit)) + also


def _of_a_function(session: Session, row: RunPart) -> str:
    name = _sentence(row.what or "a function")
    loop = _loop_on_many_shapes(session, row)
    if loop is None:
        return (
            f"{name} was traced {row.count} times: make it once, outside of any loop, and call it "
            "with tensors of few shapes in place of Python numbers (`reduce_retracing=True`)."
        )
    where = f"at line {row.line}" if row.line is not None else "above it"
    padded = _padding(session, loop) if loop.diagnosed else None
    under_xla = f" Under XLA, which compiles for each shape, {padded}." if padded else ""
    return (
        f"{name} was traced {row.count} times, as its batches vary in length: write "
        f"`@tf.function(reduce_retracing=True)` {where}, and {TRACES_LEFT} traces do for all "
        f"lengths.{under_xla}"
    )


def _padding(session: Session, loop: Loop) -> str | None:
    """Return how to pad to few lengths: code where the first component is a matrix of ids."""
    if buckets := operations(session, "bucket_by_sequence_length"):
        return (
            f"give {call_name(buckets[-1])} few boundaries, the last beyond the longest example, "
            "and `pad_to_bucket_boundary=True`"
        )
    padded, shapes = operations(session, "padded_batch"), ranks(loop.element_spec or "")
    if not padded:
        return None
    pad = f"pad to multiples of 64 behind {call_name(padded[-1])}"
    if len(shapes) != 2 or shapes[0] != 2:
        return pad
    return f"{pad}: `.map(lambda x, y: (tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % 64]]), y))`"


def _of_a_model(row: RunPart, loop: Loop) -> str:
    """Return code to paste around the user's `fit`."""
    keras = loop.keras
    one = f"one `{keras.model}`" if keras is not None else "one"
    line = f"line {loop.line}" if loop.line is not None else "the `fit`"
    keep, reset = "`initial = model.get_weights()`", "`model.set_weights(initial)`"
    if keras is None or keras.optimizer is not None:
        keep = (
            "`model.optimizer.build(model.trainable_variables)`, `initial = model.get_weights()` "
            "and `fresh = [v.numpy() for v in model.optimizer.variables]`"
        )
        # The learning rate is one of the variables in Keras 3, and what a sweep changes.
        reset += (
            " and `for v, value in zip(model.optimizer.variables, fresh): v.assign(value)`; only "
            "then set what differs from round to round, such as `model.optimizer.learning_rate`"
        )
    return (
        f"Build and compile {one} before the loop around {line}, where the models are of one form, "
        f"keep its state with {keep}, and begin each round with {reset}. "
        f"{_sentence(row.what or 'the step')} was traced and compiled {row.count} times."
    )


def _sentence(what: str) -> str:
    return what[:1].upper() + what[1:] if what.startswith("the ") else f"`{what.strip('`')}`"


LARGE_CONSTANTS = Threshold(
    "constants in a graph", 200.0, "MB", "own choice: a tenth of what TensorFlow refuses"
)
LIMIT_BYTES = 2**31
GRAPH_CONSTANTS = Meta(
    id="graph-constants",
    name="Constants in a graph",
    title_failed="Make a tensor of a large array before a function reads it",
    title_passed="No graph holds large constants",
    why="A NumPy array that a traced function reads becomes a part of its graph. With 224 MB a "
    "step of a `map` took 98 to 125 ms, with the same as a tensor 1 ms.",
    edit="A tensor made before the function, `table = tf.constant(array)`, or a `tf.Variable`; the "
    "function reads that.",
    cost="None.",
    needs=(),
    thresholds=(LARGE_CONSTANTS,),
    untried="It changes what your function reads; pipediag can't do that for you.",
)
REFUSED = re.compile(r"tensor proto whose content is larger than 2GB")
"""TensorFlow's message on an array that it can't write into a graph."""
_TENSOR_FIRST = (
    "Make a tensor of the array before, `table = tf.constant(array)`, or a `tf.Variable`, and let "
    "the function read that."
)


def check_graph_constants(session: Session) -> Iterator[Finding]:
    """Yield a finding on each function with such constants, or on the error that ended a script."""
    if REFUSED.search(session.script.detail or ""):
        yield GRAPH_CONSTANTS.finding(
            "fail",
            f"{_TENSOR_FIRST} The script ended because a function reads an array of 2 GiB or more, "
            "at the line in the traceback above.",
            evidence={"limit_bytes": LIMIT_BYTES, "known_from": "the script's error"},
            severity="error",
        )
        return
    pipelines = [session.pipeline, *(loop.pipeline for loop in session.loops)]
    ops = {op.id: op for one in pipelines if one is not None for op in one.ops}.values()
    held = [
        *((op.function.constant_bytes, op, None) for op in ops if op.function),
        *((loop.constant_bytes, None, (loop.file, loop.line)) for loop in session.loops),
    ]
    if all(size is None for size, _, _ in held):
        yield GRAPH_CONSTANTS.finding("not-applicable", "No graph of a function was read.")
    for size, op, place in held:
        if size is None or size < LARGE_CONSTANTS.value * 1e6:
            continue
        what = "The step" if op is None else f"The function of {call_name(op)}"
        percent = 100.0 * size / LIMIT_BYTES
        yield GRAPH_CONSTANTS.finding(
            "fail",
            f"{_TENSOR_FIRST} {what} holds {size / 1e6:,.0f} MB as constants in its graph, "
            f"{percent:.0f} % of what TensorFlow takes: an array that it reads is written into it.",
            op=op,
            place=place,
            evidence={
                "constant_bytes": size,
                "limit_bytes": LIMIT_BYTES,
                "percent_of_limit": percent,
            },
        )
