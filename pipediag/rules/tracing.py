"""Functions that are traced or compiled again and again, and arrays that their graphs hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.pipeline import call_name, operations
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.step import class_ms, class_percent, lengths_vary, ranks
from pipediag.rules.rule import Meta, Place
from pipediag.rules.run_parts import NOTABLE, THRESHOLDS, weigh
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.steps import Steps
from pipediag.vocabulary import Scalar

TRACES_LEFT = 2
"""With `reduce_retracing=True`: one for the first shape, one for all others."""

_MULTIPLE = 64
"""Lengths that batches are padded to in the code to paste. Own choice: few lengths are left, and
seldom is more than half of a batch padding."""


def loop_on_many_shapes(session: Session, name: str, line: int | None) -> Loop | None:
    """The training loop whose step this function is, if its batches vary in length."""
    step = f":{line} {name}"
    for loop in session.loops:
        known = [one for one in loop.step_functions if one.endswith(step)]
        vary = loop.shapes_vary or lengths_vary(loop.element_spec or "")
        if loop.role == "training" and known and vary:
            return loop
    return None


def ways(session: Session, loop: Loop, *, where: str) -> str:
    """What to write so that few traces do; `where` is the function's line, in words."""
    padded = _padding(session, loop) if loop.diagnosed else None
    more = f" Under XLA, which compiles for each shape all the same, {padded}." if padded else ""
    return (
        f"write `@tf.function(reduce_retracing=True)` {where}, and {TRACES_LEFT} traces do for all "
        f"lengths.{more}"
    )


def _padding(session: Session, loop: Loop) -> str | None:
    buckets = operations(session, "bucket_by_sequence_length")
    if buckets:
        return (
            f"give {call_name(buckets[-1])} few boundaries, the last beyond the longest example, "
            "and `pad_to_bucket_boundary=True`"
        )
    padded = operations(session, "padded_batch")
    return _behind(padded[-1], loop) if padded else None


def _behind(op: Operation, loop: Loop) -> str:
    """Code where the first component is a matrix of ids or the like; words elsewhere."""
    shapes = ranks(loop.element_spec or "")
    pad = f"pad to multiples of {_MULTIPLE} behind {call_name(op)}"
    if len(shapes) != 2 or shapes[0] != 2:
        return pad
    return (
        f"{pad}: `.map(lambda x, y: (tf.pad(x, [[0, 0], [0, -tf.shape(x)[1] % {_MULTIPLE}]]), y))`"
    )


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
RETRACING = Meta(
    id="retracing",
    name="Retracing",
    title_failed="The training function is traced or compiled again and again",
    title_passed="The training function is traced once and reused",
    why="A new shape or a new Python number as argument makes tf.function trace anew. Under XLA a "
    "new shape compiles anew without any retrace: 23 lengths cost 245 ms each.",
    edit="Pass tensors instead of Python numbers, reduce_retracing=True; pad to a few fixed "
    "lengths, drop_remainder=True, or jit_compile=False where shapes must vary.",
    cost="Padding computes on padding; drop_remainder leaves out examples; without XLA some steps "
    "are slower.",
    needs=("loop", "steps"),
    thresholds=(RETRACES, COMPILE),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="It needs the function's calls, or the shapes of its batches, changed in your code.",
)


def check_retracing(session: Session) -> list[Finding]:
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
            RETRACING.finding(
                "fail",
                _steps_advice(session, loop, steps),
                place=place,
                evidence=evidence,
                speedup_at_most=_at_most(session, loop) if row is None else _of_the_run(row),
                part="steps" if row is None else "compile",
                for_run=None if row is None else gain_at_most(session.run, _steps_saved_s(row)),
            )
        ]
    if steps.retraces:
        advice = f"{steps.retraces} retraces were seen; a partial last batch makes one."
        return [RETRACING.finding("pass", advice, place=place, evidence=evidence)]
    return [RETRACING.finding("pass", "", place=place, evidence=evidence)]


def _steps_advice(session: Session, loop: Loop, steps: Steps) -> str:
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


def _steps_saved_s(row: RunPart) -> float:
    """Of what its traces took, all but that of those that remain."""
    return row.seconds * (1.0 - min(1.0, TRACES_LEFT / (row.count or 1)))


def _of_the_run(row: RunPart) -> float | None:
    return bound(row.seconds, _steps_saved_s(row))


def _made_anew(loop: Loop, steps: Steps) -> bool:
    """Whether functions were traced for the first time again and again, on batches of one shape."""
    first_traces = steps.trace_count - steps.retraces
    return first_traces > RETRACES.value and not lengths_vary(loop.element_spec or "")


def _at_most(session: Session, loop: Loop) -> float | None:
    """None where each length is traced once: how many are still to come is not known."""
    if session.steps is None or lengths_vary(loop.element_spec or ""):
        return None
    return bound(session.steps.mean_ms, class_ms(session, ["compile"]))


AGAIN = Threshold(
    "a step that Keras makes, traced at one place",
    3.0,
    "times",
    "own choice: the first batch and a shorter last one explain two",
)
OWN_AGAIN = Threshold(
    "a function of the script's own, traced at one place",
    4.0,
    "times",
    "own choice: the first batch, a shorter last one and one more mode explain three",
)
_OF_KERAS = ("the step of `", "what `")
REPEATED_COMPILE = Meta(
    id="retracing",
    name="Repeated compiling",
    title_failed="Training stands still while the same function is traced and compiled again",
    title_passed="Each function is traced and compiled once or twice",
    why="A new model, a new `compile` and a new tf.function each start from nothing: their graph "
    "is "
    "traced and compiled anew, although it is the same as before.",
    edit="Build and compile the model once, and start each fold or configuration from the same "
    "weights and a fresh optimizer state. Define a tf.function once, outside of the loop; give it "
    "tensors in place of Python numbers, and `reduce_retracing=True` where lengths vary.",
    cost="All of the state has to be set back by hand: weights, the optimizer's variables, and "
    "seeds of dropout. The learning rate is one of these variables: what differs from round to "
    "round has to be set after them.",
    needs=("loop", "run"),
    thresholds=(AGAIN, OWN_AGAIN, *THRESHOLDS),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="It needs the code around the training changed; what compiling took is in the run's "
    "ledger.",
)


def check_repeated_compile(session: Session) -> list[Finding]:
    """One finding on all places where something was traced too often."""
    run = session.run
    assert run is not None
    if run.scope != "run":
        return [_in_what_was_seen(session, run)]
    repeated = [row for row in run.parts if row.part == "compile" and _again(row)]
    if not repeated:
        return [REPEATED_COMPILE.finding("pass", "", part="compile")]
    saved_s = sum(_run_saved_s(session, row) for row in repeated)
    weight = weigh(run, repeated, saved_s)
    worst = max(repeated, key=lambda row: row.seconds)
    advice = _run_advice(session, worst, repeated)
    if weight.status != "fail":
        advice = weight.sentence and f"{weight.sentence} {advice}"
    return [
        REPEATED_COMPILE.finding(
            weight.status,
            advice,
            place=(worst.file, worst.line),
            evidence={**weight.evidence, "traces": worst.count},
            speedup_at_most=weight.speedup_at_most,
            part="compile",
            for_run=weight.for_run,
        )
    ]


def _in_what_was_seen(session: Session, run: Run) -> Finding:
    """Where nobody knows how long all of the training is, so that no share of it can be told."""
    repeated = [row for row in run.seen if row.part == "compile" and _again(row)]
    saved_s = sum(_run_saved_s(session, row) for row in repeated)
    percent = 100.0 * saved_s / max(run.total_s, 1e-9)
    if not run.seen:
        reason = "The ledger is of a part of the training, which doesn't tell how often it comes."
        return REPEATED_COMPILE.finding("not-applicable", reason, part="compile")
    if percent < NOTABLE.value:
        return REPEATED_COMPILE.finding("pass", "", part="compile")
    worst = max(repeated, key=lambda row: row.seconds)
    return REPEATED_COMPILE.finding(
        "informative",
        f"How long all of the training is, nobody knows; of the {run.total_s:.1f} s that were seen "
        f"of the run, this could have saved {percent:.0f} %. "
        f"{_run_advice(session, worst, repeated)}",
        place=(worst.file, worst.line),
        evidence={
            "taken_s": sum(row.seconds for row in repeated),
            "savable_percent_of_what_was_seen": percent,
            "traces": worst.count,
        },
        part="compile",
    )


def _run_saved_s(session: Session, row: RunPart) -> float:
    """Of what its traces took, all but that of those that remain."""
    traces = row.count or 1
    left = TRACES_LEFT if _on_many_shapes(session, row) is not None else 1
    return row.seconds * (1.0 - min(left, traces) / traces)


def _on_many_shapes(session: Session, row: RunPart) -> Loop | None:
    return loop_on_many_shapes(session, row.what or "", row.line)


def _again(row: RunPart) -> bool:
    limit = AGAIN if (row.what or "").startswith(_OF_KERAS) else OWN_AGAIN
    return row.count is not None and row.count >= limit.value


def _run_advice(session: Session, worst: RunPart, repeated: Sequence[RunPart]) -> str:
    others = {(row.file, row.line) for row in repeated if row.line is not None}
    others -= {(worst.file, worst.line)}
    more = "another place" if len(others) == 1 else f"{len(others)} other places"
    also = f" So is what is called in {more}." if others else ""
    fit = _fit_at(session, worst)
    if fit is not None:
        return f"{_of_a_model(worst, fit)}{also}"
    return f"{_of_a_function(session, worst)}{also}"


def _of_a_function(session: Session, row: RunPart) -> str:
    name = _sentence(row.what or "a function")
    on_many = _on_many_shapes(session, row)
    if on_many is not None:
        where = f"at line {row.line}" if row.line is not None else "above it"
        return (
            f"{name} was traced {row.count} times, as its batches vary in length: "
            f"{ways(session, on_many, where=where)}"
        )
    return (
        f"{name} was traced {row.count} times: make it once, outside of any loop, and call it with "
        "tensors of few shapes in place of Python numbers (`reduce_retracing=True`, an "
        "`input_signature`, or padding to a few lengths)."
    )


def _of_a_model(row: RunPart, loop: Loop) -> str:
    eager_xla = ""
    if loop.keras is not None and loop.keras.jit_compile:
        eager_xla = " With `jit_compile=False` each model starts sooner, and may step slower."
    return (
        f"{_compiled_once(loop)}. {_sentence(row.what or 'the step')} was traced and compiled "
        f"{row.count} times.{eager_xla}"
    )


def _compiled_once(loop: Loop) -> str:
    """Code to paste around the user's `fit`."""
    keras = loop.keras
    one = f"one `{keras.model}`" if keras is not None else "one"
    line = f"line {loop.line}" if loop.line is not None else "the `fit`"
    keep, reset = "`initial = model.get_weights()`", "`model.set_weights(initial)`"
    if keras is None or keras.optimizer is not None:
        keep = (
            "`model.optimizer.build(model.trainable_variables)`, `initial = model.get_weights()` "
            "and `fresh = [v.numpy() for v in model.optimizer.variables]`"
        )
        reset += " and `for v, value in zip(model.optimizer.variables, fresh): v.assign(value)`"
        # It is one of the optimizer's variables in Keras 3, and what a sweep changes.
        reset += (
            "; only then set what differs from round to round, such as "
            "`model.optimizer.learning_rate`"
        )
    return (
        f"Build and compile {one} before the loop around {line}, where the models are of one form, "
        f"keep its state with {keep}, and begin each round with {reset}"
    )


def _fit_at(session: Session, row: RunPart) -> Loop | None:
    """The loop of Keras's that was called at that line."""
    place = (row.file, row.line)
    loops = [loop for loop in session.loops if (loop.file, loop.line) == place]
    return next((loop for loop in loops if loop.kind == "keras"), None)


def _sentence(what: str) -> str:
    return what[:1].upper() + what[1:] if what.startswith("the ") else f"`{what.strip('`')}`"


LARGE_CONSTANTS = Threshold(
    "constants in the graph of a function",
    200.0,
    "MB",
    "own choice: a tenth of the 2 GiB that TensorFlow refuses, as a message of protocol buffers "
    "can't be longer",
)
LIMIT_BYTES = 2**31
GRAPH_CONSTANTS = Meta(
    id="graph-constants",
    name="Constants in a graph",
    title_failed="Large arrays are written into a graph as constants",
    title_passed="No graph holds large constants",
    why="A NumPy array that a traced function reads becomes a part of its graph, is copied with "
    "each trace, and costs time in each call of a `map`. Own measurement on two busy cores: with "
    "224 MB a step took 98 to 125 ms, with the same as a tensor 1 ms.",
    edit="A tensor made before the function, `table = tf.constant(array)`, or a `tf.Variable`; the "
    "function reads that.",
    cost="None.",
    needs=(),
    thresholds=(LARGE_CONSTANTS,),
    severity="warn",
    effect_on_results="same results",
    untried="It changes what your function reads; pipediag can't do that for you.",
)
REFUSED = re.compile(r"tensor proto whose content is larger than 2GB")
"""What TensorFlow says of an array that it can't write into a graph."""
_MEND = (
    "Make a tensor of the array before, `table = tf.constant(array)`, or a `tf.Variable`, and let "
    "the function read that."
)


def check_graph_constants(session: Session) -> list[Finding]:
    """One finding for each function with such constants, or on the error that ended the script."""
    if REFUSED.search(session.script.detail or ""):
        return [_ended()]
    found = [*_in_pipelines(session), *_in_steps(session)]
    if found:
        return found
    seen = [op for op in _operations(session) if _bytes(op) is not None]
    read = [loop for loop in session.loops if loop.constant_bytes is not None]
    if not seen and not read:
        return [GRAPH_CONSTANTS.finding("not-applicable", "No graph of a function was read.")]
    return [GRAPH_CONSTANTS.finding("pass", "", evidence={"functions": len(seen) + len(read)})]


def _ended() -> Finding:
    return GRAPH_CONSTANTS.finding(
        "fail",
        f"{_MEND} The script ended because a function reads an array of 2 GiB or more, which "
        "TensorFlow writes into its graph as a constant. The traceback above names the line.",
        evidence={"limit_bytes": LIMIT_BYTES, "known_from": "the script's error"},
        severity="error",
    )


def _in_pipelines(session: Session) -> Iterator[Finding]:
    for op in _operations(session):
        held = _bytes(op)
        if held is not None and held >= LARGE_CONSTANTS.value * 1e6:
            yield GRAPH_CONSTANTS.finding(
                "fail",
                f"{_MEND} The function of {call_name(op)} {_holds(held)}",
                op=op,
                evidence=_evidence(held),
            )


def _in_steps(session: Session) -> Iterator[Finding]:
    for loop in session.loops:
        held = loop.constant_bytes
        if held is not None and held >= LARGE_CONSTANTS.value * 1e6:
            yield GRAPH_CONSTANTS.finding(
                "fail",
                f"{_MEND} The step {_holds(held)}",
                place=(loop.file, loop.line),
                evidence=_evidence(held),
            )


def _operations(session: Session) -> list[Operation]:
    """Of all pipelines that are known, each once."""
    pipelines = [session.pipeline, *(loop.pipeline for loop in session.loops)]
    return list({op.id: op for one in pipelines if one is not None for op in one.ops}.values())


def _bytes(op: Operation) -> int | None:
    return op.function.constant_bytes if op.function else None


def _holds(held: int) -> str:
    return (
        f"holds {held / 1e6:,.0f} MB as constants in its graph, {100 * held / LIMIT_BYTES:.0f} % "
        "of what TensorFlow takes: an array that it reads is written into it."
    )


def _evidence(held: int) -> dict[str, Scalar]:
    return {
        "constant_bytes": held,
        "limit_bytes": LIMIT_BYTES,
        "percent_of_limit": 100.0 * held / LIMIT_BYTES,
    }
