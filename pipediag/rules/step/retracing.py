"""Functions traced or compiled again while training runs."""

from __future__ import annotations

from pipediag.facts.limits import Threshold
from pipediag.facts.step import class_ms, class_percent
from pipediag.rules.prediction import without
from pipediag.rules.rule import Meta, Place, Prediction
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session

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
    prediction="The step over the step without its tracing and compiling, where that was measured.",
    needs=("loop", "steps"),
    thresholds=(RETRACES, COMPILE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    yields_to=("predict-in-step",),
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
        return [
            META.finding(
                "fail",
                _advice(loop, steps.retraces),
                place=place,
                evidence=evidence,
                own_prediction=_prediction(session),
            )
        ]
    if steps.retraces:
        advice = f"{steps.retraces} retraces are what a partial last batch or new state explains."
        return [META.finding("pass", advice, place=place, evidence=evidence)]
    return [META.finding("pass", "", place=place, evidence=evidence)]


def _advice(loop: Loop, retraces: int) -> str:
    functions = ", ".join(loop.step_functions) or "the training function"
    if retraces >= RETRACES.value:
        return (
            f"Call {functions} with tensors in place of Python numbers and with few shapes, or "
            f"give it `reduce_retracing=True`: it was traced {retraces} times more while the loop "
            "ran."
        )
    return (
        "XLA compiles for each new shape: pad to a few fixed lengths "
        "(`bucket_by_sequence_length(..., pad_to_bucket_boundary=True)`), or compile the model "
        "with `jit_compile=False`."
    )


def _prediction(session: Session) -> Prediction:
    saved = class_ms(session, ["compile"])
    if not saved:
        return Prediction(None, "How long tracing takes within a step was not measured.")
    return without(session, saved)
