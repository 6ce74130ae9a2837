"""Functions traced or compiled again while training runs."""

from __future__ import annotations

import re
from pathlib import PurePath

from pipediag.facts.bounds import bound
from pipediag.facts.limits import Threshold
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.shapes import lengths_vary
from pipediag.facts.step import class_ms, class_percent
from pipediag.rules.few_shapes import TRACES_LEFT
from pipediag.rules.rule import Meta, Place
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.steps import Steps

RETRACES = Threshold(
    "retraces while the loop runs",
    3.0,
    "retraces",
    "own choice: the partial last batch and the creation of state explain two",
)
COMPILE = Threshold(
    "tracing and compiling",
    5.0,
    "% of the step",
    "own choice, equal to the limit on input wait",
)
_KERAS_STEP = "TensorFlowTrainer.make_train_function"
META = Meta(
    id="retracing",
    name="Retracing",
    title_failed="The training function is traced or compiled again and again",
    title_passed="The training function is traced once and reused",
    looks_at="How often a training function was traced while the loop ran, and the part of the "
    "step that goes to tracing and compiling.",
    why="A new shape or a new Python number as argument makes tf.function trace anew. Under XLA a "
    "new shape compiles anew without any retrace: 23 lengths cost 245 ms each.",
    edit="Pass tensors instead of Python numbers, reduce_retracing=True; pad to a few fixed "
    "lengths, drop_remainder=True, or jit_compile=False where shapes must vary.",
    cost="Padding computes on padding; drop_remainder leaves out examples; without XLA some steps "
    "are slower.",
    bound="By the run's ledger, what its traces took without two that remain; without a "
    "ledger the step over the step without its tracing and compiling. None where XLA compiles for "
    "lengths, once for each: how many are still to come is not known.",
    needs=("loop", "steps"),
    thresholds=(RETRACES, COMPILE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="It needs the function's calls, or the shapes of its batches, changed in your code.",
)


def check(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop, steps = session.diagnosed_loop(), session.steps
    assert loop is not None
    assert steps is not None
    compile_percent = class_percent(session, ["compile"]) if session.breakdown else None
    evidence = {
        "retraces": steps.retraces,
        "trace_count": steps.trace_count,
        "compile_percent": compile_percent,
        "element_spec": loop.element_spec,
    }
    place: Place = (loop.file, loop.line)
    compiling = compile_percent is not None and compile_percent >= COMPILE.value
    if steps.retraces >= RETRACES.value or compiling:
        # The ledger has traces; what XLA compiles for another shape without one is in the steps.
        traced = steps.retraces >= RETRACES.value or _made_anew(loop, steps)
        row = _in_the_run(session, loop) if traced else None
        return [
            META.finding(
                "fail",
                _advice(session, loop, steps),
                place=place,
                evidence=evidence,
                speedup_at_most=_at_most(session, loop) if row is None else _of_the_run(row),
                part="steps" if row is None else "compile",
                for_run=None if row is None else gain_at_most(session.run, _saved_s(row)),
            )
        ]
    if steps.retraces:
        advice = f"{steps.retraces} retraces were seen; a partial last batch makes one."
        return [META.finding("pass", advice, place=place, evidence=evidence)]
    return [META.finding("pass", "", place=place, evidence=evidence)]


def _advice(session: Session, loop: Loop, steps: Steps) -> str:
    if _keras_retraces(session, loop):
        return (
            f"Keras {session.environment.keras} traces its step anew in each call of "
            "`train_on_batch`, as 3.0 to 3.6 do: use Keras 3.7 or newer, or `fit` on a dataset."
        )
    functions = ", ".join(PurePath(one).name for one in loop.step_functions)
    functions = functions or "the training function"
    if steps.retraces >= RETRACES.value and (
        loop.shapes_vary or lengths_vary(loop.element_spec or "")
    ):
        return (
            f"The batches of {functions} vary in length, and it was traced {steps.retraces} times "
            "more while the loop was measured: give it `reduce_retracing=True`, or an "
            "`input_signature` with None for the lengths."
        )
    if steps.retraces >= RETRACES.value:
        return (
            f"Call {functions} with tensors in place of Python numbers and with few shapes, or "
            f"give it `reduce_retracing=True`: it was traced {steps.retraces} times "
            "more while the loop was measured."
        )
    if _made_anew(loop, steps):
        return (
            f"Make {functions} once, outside of the loop: each time it is another function to "
            f"TensorFlow, which traced it {steps.trace_count} times."
        )
    return (
        f"Compiling takes {class_percent(session, ['compile']):.0f} % of the step. Where XLA "
        "compiles, it does so once for each new shape: pad to a few fixed lengths "
        "(`bucket_by_sequence_length(..., pad_to_bucket_boundary=True)`), or compile the model "
        "with `jit_compile=False`. The fewer lengths are still to come, the less there is to gain."
    )


def _keras_retraces(session: Session, loop: Loop) -> bool:
    """Whether the loop calls `train_on_batch` of a Keras that hands its step a generator each time.

    Own measurement, natively, of a model of one layer: 21 to 24 ms a call with Keras 3.0.5, 3.5.0
    and 3.6.0, and 0.3 to 0.5 ms with 3.7.0, 3.8.0, 3.9.0 and 3.15.1.
    """
    version = re.match(r"3\.(\d+)", session.environment.keras or "")
    of_keras = any(_KERAS_STEP in function for function in loop.step_functions)
    return loop.from_python and of_keras and version is not None and int(version[1]) < 7


def _in_the_run(session: Session, loop: Loop) -> RunPart | None:
    """What the loop's functions took to be traced, by the ledger, which has it beside the steps."""
    run = session.run
    rows = [row for row in run.parts if row.part == "compile" and row.count] if run else []
    steps = {PurePath(one).name for one in loop.step_functions}
    return next(
        (row for row in rows if f"{PurePath(row.file or '').name}:{row.line} {row.what}" in steps),
        None,
    )


def _saved_s(row: RunPart) -> float:
    """Of what its traces took, all but that of those that remain."""
    return row.seconds * (1.0 - min(1.0, TRACES_LEFT / (row.count or 1)))


def _of_the_run(row: RunPart) -> float | None:
    return bound(row.seconds, _saved_s(row))


def _made_anew(loop: Loop, steps: Steps) -> bool:
    """Whether functions were traced for the first time again and again, on batches of one shape."""
    first_traces = steps.trace_count - steps.retraces
    return first_traces > RETRACES.value and not lengths_vary(loop.element_spec or "")


def _at_most(session: Session, loop: Loop) -> float | None:
    """None where each length is traced once: how many are still to come is not known."""
    if session.steps is None or lengths_vary(loop.element_spec or ""):
        return None
    return bound(session.steps.mean_ms, class_ms(session, ["compile"]))
