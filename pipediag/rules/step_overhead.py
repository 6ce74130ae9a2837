"""Python that runs in every step: callbacks, calls of `predict`, and the start of each step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from statistics import fmean

import numpy as np

from pipediag.facts.limits import INPUT_BOUND, Threshold, bound
from pipediag.facts.names import exact_time, line_name
from pipediag.facts.pipeline import operations, place_name
from pipediag.facts.python_callables import (
    callback_percent,
    callbacks_percent,
    lines_of,
    per_batch_callbacks,
)
from pipediag.facts.run import predicted_in_steps
from pipediag.facts.step import (
    CALL_CLASSES,
    FREED_BY_FEWER_CALLS,
    class_ms,
    class_percent,
    most_percent,
    on_torch,
    shapes_vary,
)
from pipediag.rules.model_edits import (
    OWN_LOOP,
    STEPS_PER_CALL,
    compiled_by_xla,
    condition_of,
    several_steps_a_call,
)
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Rule, known
from pipediag.session.edits import (
    Change,
    CompileFunction,
    Edit,
    ExtractStep,
    PredictOnBatch,
    SetModel,
    SetParameters,
)
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import EagerStep, GraphStep
from pipediag.session.recording import Prediction
from pipediag.session.trials import WORTHWHILE
from pipediag.tensorflow_names import BATCHING

CALLBACK_SHARE = Threshold("the callback", 5.0, "% of the step", "own choice, as for input wait")
BATCH_CALLBACK = Rule(
    id="python-in-step",
    title="Run the callback less often than every step",
    why="Keras waits for the device after every batch, and then for each callback.",
    fix="Do the work every hundredth batch, or in `on_epoch_end`, where it sees fewer values.",
    needs=("loop", "keras", "steps"),
    thresholds=(CALLBACK_SHARE, INPUT_BOUND),
    frees=("python", "device_wait"),
    untried="Only you know whether its work is needed in every batch.",
)


@BATCH_CALLBACK.found_by
def _check_batch_callback(session: Session) -> Iterator[Finding]:
    per_batch = per_batch_callbacks(session)
    if per_batch and session.host is None:
        reason = session.host_missing or "The Python stacks were not sampled."
        yield BATCH_CALLBACK.finding("inconclusive", reason)
        return
    # Results that are read for it get shorter too, and the start of the next step; what the device
    # computes stays.
    at_most = most_percent(session, FREED_BY_FEWER_CALLS)
    for callback in per_batch:
        percent = callback_percent(session, callback)
        if percent < CALLBACK_SHARE.value:
            continue
        hottest = max(lines_of(session, callback), key=lambda line: line.percent, default=None)
        where = f" Its hottest line is {_at(hottest)}." if hottest else ""
        yield BATCH_CALLBACK.finding(
            "fail",
            f"Let {callback.name} work only when `batch % 100 == 0`, or once in `on_epoch_end`."
            f"{where}",
            unless=input_first(session),
            place=(callback.file, callback.line),
            evidence={"callback": callback.name, "callback_percent_of_step": percent},
            speedup_at_most=bound(100.0, max(percent, at_most)),
        )


PYTHON = Threshold("Python", 30.0, "% of the step", "measured: calling a tf.function takes 23 %")
PYTHON_MS = Threshold("Python", 0.3, "ms per step", "measured: twice a tf.function's call")
LONG = Threshold("Python of a longer step", 15.0, "% of the step", "own choice")
LONG_MS = Threshold("Python of a longer step", 1.0, "ms per step", "own choice: several calls")
SEEN = Threshold("own lines", 1.0, "% of the stack samples", "own choice: the sampler found some")
OWN_PYTHON = Rule(
    id="python-in-step",
    title="Run Python less often than every step",
    why="Python that a loop runs for each batch (a metric over all data so far, lists of values, "
    "logging) keeps the device waiting for the next call.",
    fix="Do it every hundredth step or once per epoch. Keep sums in tensors, and read them only "
    "where they are printed.",
    needs=("loop", "steps", "breakdown", "host"),
    thresholds=(PYTHON, PYTHON_MS, LONG, LONG_MS, SEEN, INPUT_BOUND),
    frees=("python", "device_wait"),
    untried="The loop's own lines have to be changed in your code.",
)


@OWN_PYTHON.found_by
def _check_own_python(session: Session) -> Iterator[Finding]:
    loop, host, steps = known(session.diagnosed_loop()), known(session.host), known(session.steps)
    lines = [line for line in host.hot_python if line.thread == "main"]
    lines.sort(key=lambda line: -line.percent)
    seen = sum(line.percent for line in lines)
    # The profile holds few steps, in which other programs may keep TensorFlow's threads waiting.
    percent = max(class_percent(session, ["python"]), seen)
    ms = max(class_ms(session, ["python"]), seen / 100.0 * steps.mean_ms)
    of_short = percent >= PYTHON.value and ms >= PYTHON_MS.value
    of_long = percent >= LONG.value and ms >= LONG_MS.value
    if loop.kind == "keras" or not loop.step_functions or not (of_short or of_long):
        return
    if seen < SEEN.value:
        return
    short_ms = float(np.percentile(steps.samples_ms, 5))
    named = list(dict.fromkeys(map(_at, lines)))[:3]
    yield OWN_PYTHON.finding(
        "fail",
        f"Python takes {percent:.0f} % of each step ({exact_time(ms)}). In stack samples, these "
        f"lines are the most frequent: {', '.join(named)}. Run them every hundredth step or once "
        "per epoch, or keep sums in tensors.",
        unless=input_first(session),
        place=(lines[0].file, lines[0].line),
        evidence={"python_percent_of_step": percent, "own_lines_percent_of_samples": seen},
        speedup_at_most=max(bound(100.0, percent) or 1.0, steps.mean_ms / short_ms),
    )


def _at(place: HotLine | EagerStep | GraphStep | Prediction) -> str:
    return line_name(place.file, place.line)


SHARE = Threshold("`predict` in a step", 10.0, "% of the step", "own choice")
PREDICT_IN_STEP = Rule(
    id="predict-in-step",
    title="Call the model itself instead of `predict` in each step",
    why="Each call of `predict` creates a tf.data pipeline, an iterator and callbacks. For one "
    "batch, that takes longer than the model.",
    fix="Use `model(x, training=False)`, which returns a tensor, or `model.predict_on_batch(x)`, "
    "which returns a NumPy array as `predict` does.",
    needs=("loop", "steps"),
    thresholds=(SHARE,),
    frees=("compile", "dispatch", "python"),
    untried="The call has to be changed in your code.",
)
_CALL = "Call `model(x, training=False)`, or `model.predict_on_batch(x)`"
_INSTEAD = {"evaluate": "Evaluate less often than every step, or call `model.test_on_batch(x, y)`"}


@PREDICT_IN_STEP.found_by
def _check_predict_in_step(session: Session) -> Iterator[Finding]:
    loop, timed = known(session.diagnosed_loop()), predicted_in_steps(session)
    for call in sorted(loop.nested, key=lambda call: -call.percent):
        if call.percent < SHARE.value:
            continue
        pairs, edit, how = timed.get((call.file, call.line)), None, _INSTEAD.get(call.what, _CALL)
        if pairs is not None:
            at = _at(pairs)
            label = f"predict_on_batch instead of predict at {at}"
            edit = PREDICT_IN_STEP.edit(at, label, PredictOnBatch(pairs.file, pairs.line))
            how = (
                f"Call `predict_on_batch(x)` instead of `predict(x, ...)` at {at}, with the same "
                f"results in {fmean(pairs.other_ms):.1f} ms instead of {fmean(pairs.own_ms):.1f} ms"
            )
        yield PREDICT_IN_STEP.finding(
            "fail",
            f"{how}: it takes {call.percent:.0f} % of each step ({exact_time(call.ms)} per call).",
            place=(call.file, call.line),
            evidence={"took_percent_of_step": call.percent, "call_ms": call.ms},
            edit=edit,
            speedup_at_most=100.0 / (100.0 - min(call.percent, 99.0)),
        )


OVERHEAD = Threshold("dispatch and Python", 15.0, "% of the step", "XProf: over 15 % is high")
LITTLE = Threshold("dispatch and Python, to be tried", 3.0, "% of the step", "XProf: moderate")
GAIN = Threshold("gain without most of Python", 1.03, "times", "a trial can confirm that")
HOST_OVERHEAD = Rule(
    id="host-overhead",
    title="Run several steps per call",
    why="Keras starts every step from Python, reads its metrics back and runs callbacks.",
    fix="Use `compile(steps_per_execution=16)`. Callbacks and the progress bar then see only every "
    "16th step.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(OVERHEAD, LITTLE, GAIN, INPUT_BOUND),
    frees=FREED_BY_FEWER_CALLS,
    untried=OWN_LOOP,
)
IN_CALLS = Threshold("computing and launching operations", 30.0, "% of the step", "own choice")
XLA = Rule(
    id="xla",
    title="Compile the step with XLA",
    why="XLA fuses the small operations of a step, of which an optimizer has many. On two CPUs, "
    "the steps of five small embedding models took 1.0 to 1.6 times as long without it.",
    fix="Use `compile(jit_compile=True)`. It rounds differently, compiles for each shape of a "
    "batch, and can't compile operations on strings or `py_function`.",
    needs=("loop", "keras", "steps", "breakdown"),
    thresholds=(IN_CALLS,),
    effect="same up to order or rounding",
    severity="info",
)


@XLA.found_by
def _check_xla(session: Session) -> Iterator[Finding]:
    loop, edit = known(session.diagnosed_loop()), compiled_by_xla(session, XLA.id)
    percent = class_percent(session, ["device_compute", *CALL_CLASSES])
    # The evaluation of a model is compiled, too.
    loops = [loop, *(one for one in session.loops if one.kind == "keras")]
    if edit is not None and percent >= IN_CALLS.value and not any(map(shapes_vary, loops)):
        yield XLA.finding(
            "informative",
            "Use `compile(jit_compile=True)`.",
            place=(loop.file, loop.line),
            evidence={
                "device_compute_percent_of_step": class_percent(session, ["device_compute"]),
                "dispatch_percent_of_step": class_percent(session, ["dispatch"]),
            },
            edit=edit,
        )


OWN_PYTHON_FIRST = "Most of the overhead is the script's own Python: fix that first."


@HOST_OVERHEAD.found_by
def _check_host_overhead(session: Session) -> Iterator[Finding]:
    loop, edit = known(session.diagnosed_loop()), several_steps_a_call(session, HOST_OVERHEAD.id)
    callbacks = callbacks_percent(session)
    percent, python = class_percent(session, CALL_CLASSES), class_percent(session, ["python"])
    percent -= callbacks
    high, other = percent >= OVERHEAD.value, _other_rule(session, loop)
    # A loop in a graph, or of several replicas, can't run several steps per call.
    fits = loop.kind in ("keras", "eager", "tf_function")
    if percent < LITTLE.value or not fits or not (high or (other is None and edit)):
        return
    waits = input_first(session)
    compiled = f"`compile(steps_per_execution={STEPS_PER_CALL})`"
    how = f"Run several steps per call: {compiled}."
    if loop.keras is None and any("make_train_function" in one for one in loop.step_functions):
        how = f"Train with `fit(dataset)` instead of `train_on_batch`, and {compiled}."
    elif loop.keras is None:
        steps = f"`for _ in tf.range({STEPS_PER_CALL})`"
        how = f"Pass the iterator to a tf.function that loops with {steps}."
    if loop.from_python:
        dataset = "`tf.data.Dataset.from_tensor_slices((x, y)).batch(n)`"
        how = f"Make a dataset of the arrays ({dataset}). {how}"
    # No trial could confirm what sharing a call saves of little Python.
    own = max(0.0, python - callbacks)
    little = (bound(100.0, own, calls=STEPS_PER_CALL) or 1.0) < GAIN.value
    yield HOST_OVERHEAD.finding(
        "informative" if other or waits or little or not high else "fail",
        other or waits or how,
        place=(loop.file, loop.line),
        evidence={
            "dispatch_percent_of_step": class_percent(session, ["dispatch"]),
            "python_percent_of_step": python,
        },
        edit=None if other else edit,
        effect=None if other else "same results",
        condition=condition_of(session, edit),
    )


def _own_code_first(session: Session, loop: Loop) -> str | None:
    """Return what in the loop's own code makes most of the overhead; None where Keras runs it."""
    if any(finding.status == "fail" for finding in OWN_PYTHON.findings(session)):
        return OWN_PYTHON_FIRST
    calls = [call for call in loop.nested if call.percent >= SHARE.value]
    if loop.kind != "keras" and calls:
        return f"Much of the overhead is `{calls[0].what}` in each step: change that first."
    return None


def _other_rule(session: Session, loop: Loop) -> str | None:
    if (first := _own_code_first(session, loop)) is not None:
        return first
    keras = loop.keras
    eager = keras.run_eagerly if keras else not loop.step_functions
    if keras is not None and on_torch(session):
        return "Keras does not support `steps_per_execution` on PyTorch."
    if eager or session.environment.run_functions_eagerly:
        return "The step runs eagerly: fix `eager-execution` first."
    if keras is not None and keras.steps_per_execution > 1:
        return f"Each call already runs {keras.steps_per_execution} steps."
    return None


FIXED_COST = Threshold("dispatch and Python", 40.0, "% of the step", "own choice: runs vary by 10")
BATCH = Threshold("batch size", 256.0, "examples per replica", "measured: 2.7x from 32 to 128")
SMALL_BATCH = Rule(
    id="small-batch",
    title="Train with a larger batch",
    why="Dispatch, Python and the exchange of gradients cost the same, however many examples.",
    fix="Use a batch four times as large, at least 32; under a strategy, that of one device times "
    "the replicas. With fewer updates, learning rate and number of epochs must be tuned again.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(FIXED_COST, BATCH, INPUT_BOUND),
    effect="changes a hyper-parameter",
    frees=FREED_BY_FEWER_CALLS,
    untried="Keras or your own code makes the batches, and a trial can't change them there.",
)
FACTOR = 4
USUAL = 32
"""Examples in a batch of Keras's `fit`, where the script doesn't say: the least to try."""


def _larger_size(size: int) -> int:
    return max(FACTOR * size, USUAL)


@SMALL_BATCH.found_by
def _check_small_batch(session: Session) -> Iterator[Finding]:
    loop, steps = known(session.diagnosed_loop()), known(session.steps)
    size = steps.batch_size or loop.batch_size
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    batch = next(reversed(operations(session, *BATCHING)), None)
    finding = partial(
        SMALL_BATCH.finding,
        op=batch,
        place=None if batch else (loop.file, loop.line),
        evidence={"batch_size": size, "fixed_cost_percent_of_step": percent},
    )
    if size is None:
        yield finding("inconclusive", "The batch size is not known.")
        return
    above = session.operation(next(iter(batch.parent_ids), None)) if batch is not None else None
    if above is not None and above.cardinality is not None and 0 <= above.cardinality <= size:
        return  # one batch has all of the data
    edit = _larger(batch) if batch is not None else None
    few, larger = size / loop.replicas < BATCH.value, _larger_size(size)
    # A global batch as large as that of one device leaves each replica little to compute.
    exchanged = class_percent(session, ["collective"]) if loop.replicas > 1 else 0.0
    could_gain = (bound(100.0, percent, calls=larger // size) or 1.0) >= WORTHWHILE
    if not (few and percent + exchanged >= FIXED_COST.value) and (edit is None or not could_gain):
        return
    waits = input_first(session) or _own_code_first(session, loop)
    exchange = ", and to exchange gradients," if loop.replicas > 1 else ""
    yield finding(
        "fail" if few and percent >= FIXED_COST.value and waits is None else "informative",
        waits
        or f"Try a batch of {larger} instead of {size}, and tune the learning rate again: the "
        f"time to start a step{exchange} hardly grows with the batch.",
        speedup_at_most=larger / size,
        edit=edit,
    )


def _larger(batch: Operation) -> Edit | None:
    written = batch.parameters.get("batch_size")
    if not isinstance(written, int):
        return None
    larger = SetParameters(batch.id, {"batch_size": _larger_size(written)})
    label = f"batches of {_larger_size(written)} instead of {written} from the {place_name(batch)}"
    caveat = "The trial measures examples per second, not how well the model then learns."
    return SMALL_BATCH.edit(batch, label, larger, caveat=caveat)


EAGER_EXECUTION = Rule(
    id="eager-execution",
    title="Run the training step as a graph",
    why="Eager execution is meant for debugging: Python starts each operation separately.",
    fix="Remove `run_eagerly`, or put `@tf.function` on the step. Python within the step (print, "
    "breakpoints, lists) then runs only during tracing.",
    needs=("loop",),
    effect="same up to order or rounding",
    frees=(*FREED_BY_FEWER_CALLS, "device_compute"),
    untried=OWN_LOOP,
)


@EAGER_EXECUTION.found_by
def _check_eager_execution(session: Session) -> Iterator[Finding]:
    loop, keras = known(session.diagnosed_loop()), session.keras
    step: EagerStep | GraphStep | None = None
    if session.environment.run_functions_eagerly:
        untried = "The switch applies to the whole process, and other code may rely on it."
        advised: _Advised = "Remove `tf.config.run_functions_eagerly(True)`.", "", (), untried
    elif keras is not None and keras.run_eagerly:
        eagerly = "run_eagerly=False in compile", (SetModel({"run_eagerly": False}),)
        advised = "Compile without `run_eagerly=True`.", *eagerly, None
    elif loop.kind != "eager" or not loop.updates_variables:
        return
    elif loop.eager_steps:
        step = min(loop.eager_steps, key=lambda one: one.lacking is not None)
        advised = _on_functions(loop.eager_steps)
    elif loop.step_functions:
        return
    else:
        step = loop.graph_step
        advised = _on_body(step)
    advice, label, changes, no_edit = advised
    percent = class_percent(session, CALL_CLASSES) if session.breakdown else None
    yield EAGER_EXECUTION.finding(
        "fail",
        advice,
        place=(step.file, step.line) if step is not None else (loop.file, loop.line),
        evidence={"dispatch_and_python_percent_of_step": percent},
        edit=Edit(EAGER_EXECUTION.id, label, changes) if changes else None,
        untried=no_edit,
    )


_Advised = tuple[str, str, tuple[Change, ...], str | None]
"""Advice, and an edit's label and changes or why there is none."""


def _on_functions(steps: list[EagerStep]) -> _Advised:
    fit = [one for one in steps if one.lacking is None]
    named = " and ".join(f"`{one.function}` ({_at(one)})" for one in fit or steps[:1])
    if not fit:
        return f"Change {named} so that it can be a `tf.function`.", "", (), steps[0].lacking
    label = "@tf.function on " + " and ".join(f"`{one.function}`" for one in fit)
    changes = tuple(CompileFunction(one.file, one.line, one.function) for one in fit)
    return f"Put `@tf.function` on {named}.", label, changes, None


def _on_body(step: GraphStep | None) -> _Advised:
    advice = "Move the body of the loop into a function with `@tf.function`"
    if step is None:
        return f"{advice}.", "", (), None
    if step.is_timed:
        advice += (
            f", with the same results up to rounding: {fmean(step.other_ms):.1f} ms instead of "
            f"{fmean(step.own_ms):.1f} ms"
        )
    if step.lacking is not None:
        return f"{advice}.", "", (), f"The step can't be moved as it is. {step.lacking}"
    change = ExtractStep(step.file, step.line, tuple(step.numbers), step.relaxed)
    return f"{advice}.", f"the step at {_at(step)} as a tf.function", (change,), None
