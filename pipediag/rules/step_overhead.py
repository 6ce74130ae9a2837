"""The fixed cost of starting each step from Python."""

from __future__ import annotations

from functools import partial

from pipediag.facts.limits import INPUT_BOUND, Threshold, bound
from pipediag.facts.pipeline import operations, place_name
from pipediag.facts.python_callables import callbacks_percent, per_batch_callbacks
from pipediag.facts.step import CALL_CLASSES, FREED_BY_FEWER_CALLS, class_percent, on_torch
from pipediag.rules.model_edits import (
    OWN_LOOP,
    STEPS_PER_CALL,
    keras_of,
    several_steps_a_call,
    shared_calls_effect,
)
from pipediag.rules.python_in_step import takes_the_steps
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SetModel, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.trials import WORTHWHILE
from pipediag.tensorflow_names import BATCHING

OVERHEAD = Threshold(
    "dispatch and Python", 15.0, "% of the step", "XProf: host time over 15 % is high"
)
LITTLE = Threshold(
    "dispatch and Python to try", 3.0, "% of the step", "XProf: host time over 3 % is moderate"
)
GAIN = Threshold(
    "upper bound without most of Python", 1.03, "times", "the gain from which a trial confirms"
)
HOST_OVERHEAD = Meta(
    id="host-overhead",
    name="Host overhead per step",
    title_failed="Let several steps share a call",
    title_passed="Dispatch and Python take little of the step",
    why="Keras starts every step from Python, reads its metrics back and runs callbacks.",
    edit="compile(steps_per_execution=16), or a tf.function that loops over several batches.",
    cost="Callbacks and progress see every 16th step only; tracing takes longer.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(OVERHEAD, LITTLE, GAIN, INPUT_BOUND),
    frees=FREED_BY_FEWER_CALLS,
    tried_when_informing=True,
)
OWN_PYTHON_FIRST = "Python of the script's own takes most of that: deal with it first."


def check_host_overhead(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    loop = session.diagnosed_loop()
    assert loop is not None
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    finding = partial(
        HOST_OVERHEAD.finding,
        place=(loop.file, loop.line),
        evidence={
            "dispatch_percent": class_percent(session, ["dispatch"]),
            "python_percent": class_percent(session, ["python"]),
            "steps_per_execution": loop.keras.steps_per_execution if loop.keras else None,
        },
    )
    high = percent >= OVERHEAD.value
    other, edit = _other_rule(session, loop), several_steps_a_call(session, HOST_OVERHEAD.id)
    fits = loop.kind in ("keras", "eager", "tf_function")
    untried = not high and (other is not None or edit is None or not fits)
    if percent < LITTLE.value or untried:
        return [finding("pass")]
    if not fits:
        return [
            finding(
                "not-applicable",
                "Several steps in one call do not fit a loop in a graph or of several replicas.",
            )
        ]
    if other is not None:
        return [finding("informative", other)]
    waits = input_first(session)
    # No trial could confirm what sharing a call saves of little Python.
    own = max(0.0, class_percent(session, ["python"]) - callbacks_percent(session))
    little = (bound(100.0, own, calls=STEPS_PER_CALL) or 1.0) < GAIN.value
    informs = not high or waits is not None or little
    takes = f"Dispatch and Python take {percent:.0f} % of the step. " if informs else ""
    return [
        finding(
            "informative" if informs else "fail",
            waits or f"{takes}{_advice(session, loop)}",
            edit=edit,
            effect=shared_calls_effect(session),
            untried=OWN_LOOP,
        )
    ]


def _other_rule(session: Session, loop: Loop) -> str | None:
    """Return why this is not the rule to act on, or None."""
    if takes_the_steps(session):
        return OWN_PYTHON_FIRST
    keras = loop.keras
    if keras is not None and on_torch(session):
        return "Keras refuses `steps_per_execution` on PyTorch."
    eager = keras.run_eagerly if keras else not loop.step_functions
    if eager or session.environment.run_functions_eagerly:
        return "The step runs eagerly: deal with eager-execution first."
    if keras is not None and keras.steps_per_execution > 1:
        return f"Already {keras.steps_per_execution} steps share a call."
    return None


def _advice(session: Session, loop: Loop) -> str:
    loops = f"loop with `for _ in tf.range({STEPS_PER_CALL})`."
    if loop.from_python:
        # Such a loop has no iterator that a function could take.
        return (
            "Make a dataset of the arrays, such as "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(n)`, with what Python does to each "
            "batch in a `map` of it. Then call `model.fit(dataset)`, compiled with "
            f"`steps_per_execution={STEPS_PER_CALL}`, or let a tf.function take its iterator and "
            f"{loops}"
        )
    if loop.keras is None:
        return f"Run several steps in one call: let a tf.function take the iterator and {loops}"
    advice = (
        f"Let {STEPS_PER_CALL} steps share a call: "
        f"`compile(..., steps_per_execution={STEPS_PER_CALL})`."
    )
    if hooked := [callback.name for callback in per_batch_callbacks(session)]:
        advice += f" {', '.join(hooked)} then works once for all of them."
    return advice


FIXED_COST = Threshold(
    "dispatch and Python", 30.0, "% of the step", "own choice, twice XProf's 15 %"
)
BATCH = Threshold(
    "batch size", 256.0, "examples a replica", "own measurements: from 32 to 128 2.7x, to 512 5x"
)
SMALL_BATCH = Meta(
    id="small-batch",
    name="Small batch",
    title_failed="Train with a larger batch",
    title_passed="Dispatch and Python take little of the step",
    why="That part is paid once a step, on each replica, however many examples it trains.",
    edit="A batch four times as large.",
    cost="Fewer updates an epoch: learning rate and epochs must be tuned again. More memory.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(FIXED_COST, BATCH, INPUT_BOUND),
    effect_on_results="changes a hyper-parameter",
    frees=FREED_BY_FEWER_CALLS,
    tried_when_informing=True,
)
FACTOR = 4


def check_small_batch(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    loop, steps = session.diagnosed_loop(), session.steps
    assert loop is not None
    assert steps is not None
    size = steps.batch_size or loop.batch_size
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    batch = next(iter(reversed(operations(session, *BATCHING))), None)
    finding = partial(
        SMALL_BATCH.finding,
        op=batch,
        place=(batch.file, batch.line) if batch else (loop.file, loop.line),
        evidence={
            "batch_size": size,
            "replicas": loop.replicas,
            "fixed_cost_percent": percent,
            "step_ms": steps.mean_ms,
        },
    )
    if size is None:
        return [finding("inconclusive", "The batch size is not known.")]
    edit = None
    written = batch.parameters.get("batch_size") if batch else None
    if batch is not None and isinstance(written, int):
        edit = Edit(
            id=f"{SMALL_BATCH.id}:{batch.id}",
            label=f"batches of {FACTOR * written} in place of {written} from the "
            f"{place_name(batch)}",
            changes=(SetParameters(batch.id, {"batch_size": FACTOR * written}),),
            caveat="It counts examples per second; how well the model learns from larger batches "
            "is not measured.",
        )
    likely = size / loop.replicas < BATCH.value and percent >= FIXED_COST.value
    could_gain = (bound(100.0, percent, calls=FACTOR) or 1.0) >= WORTHWHILE
    if not likely and (edit is None or not could_gain):
        return [finding("pass")]
    each = f" Each of {loop.replicas} replicas gets {size / loop.replicas:g} examples of it."
    advice = (
        f"Try a batch of {FACTOR * size} in place of {size}, and tune the learning rate again: "
        f"dispatch and Python take {percent:.0f} % of the step, and hardly grow with the "
        f"batch.{each if loop.replicas > 1 else ''}"
    )
    waits = input_first(session) or (OWN_PYTHON_FIRST if takes_the_steps(session) else None)
    return [
        finding(
            "fail" if likely and waits is None else "informative",
            waits or advice,
            speedup_at_most=FACTOR,
            edit=edit,
            untried="Keras or your own code makes the batches, where a trial can't change them.",
        )
    ]


EAGER_EXECUTION = Meta(
    id="eager-execution",
    name="Eager execution",
    title_failed="Run the training step as a graph",
    title_passed="The training step runs as a graph",
    why="Eager execution, meant for debugging, starts each operation from Python by itself.",
    edit="Remove run_eagerly, or put @tf.function on the step.",
    cost="Python within the step (print, breakpoints, lists) runs only while it is traced.",
    needs=("loop",),
    effect_on_results="same up to order or rounding",
    frees=(*FREED_BY_FEWER_CALLS, "device_compute"),
)


def check_eager_execution(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    loop, keras = session.diagnosed_loop(), keras_of(session)
    assert loop is not None
    everywhere, edit = session.environment.run_functions_eagerly, None
    untried = OWN_LOOP
    if everywhere:
        advice = "Remove `tf.config.run_functions_eagerly(True)`."
        untried = "The switch holds for the whole process, and other code may rely on it."
    elif keras is not None and keras.run_eagerly:
        advice = "Compile without `run_eagerly=True`."
        change = SetModel({"run_eagerly": False})
        edit = Edit(EAGER_EXECUTION.id, "run_eagerly=False in compile", (change,))
    elif loop.kind == "eager" and loop.updates_variables and not loop.step_functions:
        advice = "Move the body of the loop into a function with `@tf.function`."
    else:
        return []
    percent = class_percent(session, CALL_CLASSES) if session.breakdown else None
    return [
        EAGER_EXECUTION.finding(
            "fail",
            advice,
            place=(loop.file, loop.line),
            evidence={
                "run_functions_eagerly": everywhere,
                "dispatch_and_python_percent": percent,
            },
            edit=edit,
            untried=untried,
        )
    ]
