"""Functions that are traced or compiled again and again, and arrays that their graphs hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.names import line_name
from pipediag.facts.pipeline import call_name, every
from pipediag.facts.run import is_step_function, rows_of_loop, traces_of_step
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.step import (
    GROUPS,
    class_ms,
    class_percent,
    lengths_vary,
    most_percent,
    shapes_vary,
)
from pipediag.rules.relevance import THRESHOLDS, weigh_rows
from pipediag.rules.rule import Rule, known
from pipediag.session.edits import CompileFunction, Edit
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop, Steps
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

TRACES_LEFT = 2
"""Traces with `reduce_retracing=True`: one for the first shape, one for all others."""
RETRACES = Threshold("retraces in the loop", 3.0, "retraces", "own choice: new state explains two")
MOST_STEPS = Threshold("steps with a new trace", 50.0, "% of the steps", "own choice")
COMPILE = Threshold("tracing and compiling", 5.0, "% of the step", "own choice, as for input wait")
RETRACING = Rule(
    id="retracing",
    title="Stop retracing the training function",
    why="A new shape or a new Python number as an argument makes tf.function trace again. Under "
    "XLA, a new shape is compiled again even without a retrace: 23 lengths cost 245 ms each.",
    fix="Pass tensors instead of Python numbers, with `reduce_retracing=True`. Pad to a few fixed "
    "lengths, or use `jit_compile=False` if shapes must vary.",
    needs=("loop", "steps"),
    thresholds=(RETRACES, COMPILE, MOST_STEPS),
    effect="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="The function's calls, or the shapes of its batches, have to be changed in your code.",
)


@RETRACING.found_by
def _check_retracing(session: Session) -> Iterator[Finding]:
    loop, steps = known(session.diagnosed_loop()), known(session.steps)
    percent = class_percent(session, ["compile"]) if session.breakdown else None
    retraced = steps.retraces >= RETRACES.value
    if not retraced and (percent is None or percent < COMPILE.value):
        return
    # The ledger has traces; what XLA compiles for another shape without one is in the steps.
    traced = retraced or _created_again(loop, steps)
    row = traces_of_step(session, loop) if traced else None
    at_most = saved_s = None
    part: RunPartName = "steps"
    if row is not None:
        part, saved_s = "compile", _saved_s(row)
        at_most = bound(row.seconds, saved_s)
        if steps.trace_count >= MOST_STEPS.value / 100.0 * loop.steps:
            # A new graph is also optimised, called for the first time and freed again: no step
            # shows what would be left of the host's work.
            host = most_percent(session, GROUPS["overhead"])
            steps_s = sum(one.seconds for one in rows_of_loop(session, "steps"))
            saved_s, at_most, part = saved_s + steps_s * host / 100.0, bound(100.0, host), "steps"
    elif not lengths_vary(loop.element_spec or ""):
        # Where each length is traced once, it is not known how many are still to come.
        at_most = bound(steps.mean_ms, class_ms(session, ["compile"]))
    yield RETRACING.finding(
        "fail",
        _steps_advice(session, loop, steps),
        place=(loop.file, loop.line),
        evidence={
            "retraces": steps.retraces,
            "trace_count": steps.trace_count,
            "compile_percent_of_step": percent,
        },
        speedup_at_most=at_most,
        edit=_for_all_shapes(loop) if steps.retraces >= RETRACES.value else None,
        part=part,
        for_run=None if row is None else gain_at_most(session.run, saved_s),
    )


_STEP_FUNCTION = re.compile(r"(.+):(\d+) (\S+)")


def _for_all_shapes(loop: Loop) -> Edit | None:
    """Return the edit of the one function that is traced for each shape; None for other causes."""
    places = [_STEP_FUNCTION.fullmatch(one) for one in loop.step_functions]
    if loop.kind == "keras" or not shapes_vary(loop) or len(places) != 1 or places[0] is None:
        return None
    file, line, function = places[0].groups()
    change = CompileFunction(file, int(line), function, reduce_retracing=True)
    label = f"reduce_retracing=True for `{function}` ({line_name(file, int(line))})"
    return RETRACING.edit(function, label, change)


def _steps_advice(session: Session, loop: Loop, steps: Steps) -> str:
    if _keras_retraces(session, loop):
        return (
            "Use Keras 3.7 or newer, or `fit` on a dataset: Keras "
            f"{session.environment.keras} traces its step again in each call of `train_on_batch`."
        )
    named = (_STEP_FUNCTION.sub(r"`\3` at \1:\2", PurePath(f).name) for f in loop.step_functions)
    names = ", ".join(named) or "the training function"
    if steps.retraces >= RETRACES.value:
        whole = f"so that {TRACES_LEFT} traces serve batches of all shapes"
        also = whole if _for_all_shapes(loop) else "and pass tensors instead of Python numbers"
        return (
            f"Give {names} `reduce_retracing=True`, {also}: it was retraced {steps.retraces} "
            "times while the loop was measured."
        )
    if _created_again(loop, steps):
        return f"Create {names} once, outside the loop: it was traced {steps.trace_count} times."
    return (
        "Pad to a few fixed lengths (`bucket_by_sequence_length(..., pad_to_bucket_boundary=True)`)"
        ", or compile with `jit_compile=False`: compiling takes "
        f"{class_percent(session, ['compile']):.0f} % of the step, once for each new shape."
    )


def _keras_retraces(session: Session, loop: Loop) -> bool:
    """Return True if the loop calls `train_on_batch` of a Keras that traces it each time.

    Measured: 21 to 24 ms a call with Keras 3.0.5 to 3.6.0, and 0.3 to 0.5 ms from 3.7.0 on.
    """
    version = re.match(r"3\.(\d+)", session.environment.keras or "")
    step = "TensorFlowTrainer.make_train_function"
    of_keras = any(step in function for function in loop.step_functions)
    return loop.from_python and of_keras and version is not None and int(version[1]) < 7


def _saved_s(row: RunPart, left: int = TRACES_LEFT) -> float:
    """Return the seconds of its traces that go where so many remain."""
    return row.seconds * (1.0 - min(1.0, left / (row.count or 1)))


def _created_again(loop: Loop, steps: Steps) -> bool:
    """Return True if functions were traced for the first time again, on batches of one shape."""
    again = steps.trace_count - steps.retraces > RETRACES.value
    return again and not lengths_vary(loop.element_spec or "")


AGAIN = Threshold("traces of a Keras step", 3.0, "times", "own choice: two batches explain two")
OWN_AGAIN = Threshold("traces of an own function", 4.0, "times", "own choice: two batches, a mode")
REPEATED_COMPILE = Rule(
    id="retracing",
    title="Build each model and function once",
    why="A new model, a new `compile` or a new tf.function is traced and compiled again.",
    fix="Build and compile the model once, and set weights and optimizer state anew by hand for "
    "each fold. Define a tf.function outside the loop.",
    needs=("loop", "run"),
    thresholds=(AGAIN, OWN_AGAIN, *THRESHOLDS),
    effect="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="A trial compares steps; the run's ledger shows the time spent compiling.",
)


@REPEATED_COMPILE.found_by
def _check_repeated_compile(session: Session) -> Iterator[Finding]:
    """Yield a finding on all places where something was traced too often, in a run whose length is
    known."""
    run, loop, steps = known(session.run), session.diagnosed_loop(), session.steps
    of_step = traces_of_step(session, loop) if loop is not None else None
    # A function has one first trace, so several tell that it was made several times.
    made_again = steps is not None and steps.trace_count - steps.retraces >= AGAIN.value

    def again(row: RunPart) -> bool:
        of_keras = (row.what or "").startswith(("the step of `", "what `"))
        limit = AGAIN if of_keras or (made_again and row is of_step) else OWN_AGAIN
        return row.part == "compile" and row.count is not None and row.count >= limit.value

    repeated = [row for row in run.parts if run.scope == "run" and again(row)]
    if not repeated:
        return
    worst = max(repeated, key=lambda row: row.seconds)
    left = ((row, TRACES_LEFT if _on_many_shapes(session, row) else 1) for row in repeated)
    saved_s = sum(_saved_s(row, traces) for row, traces in left)
    yield REPEATED_COMPILE.weighed(
        weigh_rows(run, repeated, saved_s),
        _run_advice(session, worst, repeated),
        place=(worst.file, worst.line),
        evidence={"traces": worst.count},
        part="compile",
    )


def _on_many_shapes(session: Session, row: RunPart) -> bool:
    """Return True if the function is the step of a training loop whose batches vary in length."""
    loops = (loop for loop in session.loops if loop.role == "training" and shapes_vary(loop))
    return any(is_step_function(loop, row) for loop in loops)


def _run_advice(session: Session, worst: RunPart, repeated: Sequence[RunPart]) -> str:
    places = {(row.file, row.line) for row in repeated if row.line is not None}
    others = len(places - {(worst.file, worst.line)})
    also = f" The same is true of calls in {others} other places." if others else ""
    fits = (loop for loop in session.loops if (loop.file, loop.line) == (worst.file, worst.line))
    fit = next((loop for loop in fits if loop.kind == "keras"), None)
    what = worst.what or "the function"
    name = what[:1].upper() + what[1:] if what.startswith("the ") else f"`{what.strip('`')}`"
    traced = f"{name} was traced {worst.count} times"
    if fit is not None:
        model = f"`{fit.keras.model}`" if fit.keras is not None else "model"
        # The learning rate is one of the variables in Keras 3, and what a sweep changes.
        return (
            f"Build and compile one {model} before the loop around the `fit`: {traced}. Keep its "
            "state with `model.optimizer.build(model.trainable_variables)`, `initial = "
            "model.get_weights()` and `fresh = [v.numpy() for v in model.optimizer.variables]`. "
            "Begin each round with `model.set_weights(initial)` and `for v, value in "
            "zip(model.optimizer.variables, fresh): v.assign(value)`, and only then set what "
            f"differs from round to round.{also}"
        )
    if not _on_many_shapes(session, worst):
        return (
            f"{traced}: create it once, outside any loop, and call it with tensors of a few "
            f"shapes instead of Python numbers (`reduce_retracing=True`).{also}"
        )
    return (
        f"{traced}, as its batches vary in length: `@tf.function(reduce_retracing=True)` leaves "
        f"{TRACES_LEFT} traces for all lengths, of which XLA still compiles each. Pad to a few, "
        "ids with labels by `.map(lambda x, y: (tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % 64]]), "
        f"y))` after the batch.{also}"
    )


LARGE_CONSTANTS = Threshold("constants in a graph", 200.0, "MB", "own choice: a tenth of the limit")
_TENSOR_FIRST = (
    "Let the function read a tensor that is created before it: `table = tf.constant(array)`."
)
GRAPH_CONSTANTS = Rule(
    id="graph-constants",
    title="Turn large arrays into tensors outside the function",
    why="A NumPy array that a traced function reads becomes a part of its graph. With 224 MB, a "
    "step of a `map` took 98 to 125 ms; with a tensor instead, it took 1 ms.",
    fix=f"{_TENSOR_FIRST} A `tf.Variable` works as well.",
    needs=(),
    thresholds=(LARGE_CONSTANTS,),
    untried="It changes what your function reads; pipediag can't do that for you.",
)
REFUSED = "tensor proto whose content is larger than 2GB"
"""TensorFlow's message on an array that it can't write into a graph."""


@GRAPH_CONSTANTS.found_by
def _check_graph_constants(session: Session) -> Iterator[Finding]:
    if REFUSED in (session.script.detail or ""):
        yield GRAPH_CONSTANTS.finding(
            "fail",
            f"{_TENSOR_FIRST} The script ended because a function reads an array of 2 GiB or more, "
            "at the line in the traceback above.",
            severity="error",
        )
        return
    found: list[tuple[str, int | None, dict[str, Any]]] = [
        (f"The function of {call_name(op)}", op.function.constant_bytes, {"op": op})
        for op in every(session)
        if op.function is not None
    ]
    for loop in session.loops:
        found.append(("The step", loop.constant_bytes, {"place": (loop.file, loop.line)}))
    for what, size, at in found:
        if size is not None and size >= LARGE_CONSTANTS.value * 1e6:
            yield GRAPH_CONSTANTS.finding(
                "fail",
                f"{_TENSOR_FIRST} {what} holds {size / 1e6:,.0f} MB as constants in its graph, of "
                "the 2 GiB that TensorFlow allows: arrays that it reads become part of it.",
                evidence={"constants_bytes": size},
                **at,
            )
