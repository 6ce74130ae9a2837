"""The fixed cost of starting each step from Python."""

from __future__ import annotations

from pipediag.facts.limits import INPUT_BOUND, Threshold, bound
from pipediag.facts.pipeline import operations, place_name
from pipediag.facts.python_callables import callbacks_percent, per_batch_callbacks
from pipediag.facts.step import CALL_CLASSES, FREED_BY_FEWER_CALLS, class_percent, on_torch
from pipediag.rules.bounds import without
from pipediag.rules.model_edits import (
    OWN_LOOP,
    STEPS_PER_CALL,
    several_steps_a_call,
    shared_calls_effect,
)
from pipediag.rules.python_in_step import takes_the_steps
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, SetModel, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.trials import WORTHWHILE
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import FindingStatus

OVERHEAD = Threshold(
    "dispatch and Python",
    15.0,
    "% of the step",
    "XProf: kernel launch or other host time over 15 % of the step is high, over 3 % moderate",
)
LITTLE = Threshold(
    "dispatch and Python that are not worth a trial",
    3.0,
    "% of the step",
    "XProf: host time over 3 % of the step is moderate; no trial confirms a gain of less",
)
GAIN = Threshold(
    "predicted speed-up",
    1.03,
    "times",
    "the gain from which an edit counts as confirmed when it is tried",
)
HOST_OVERHEAD = Meta(
    id="host-overhead",
    name="Host overhead per step",
    title_failed="Dispatch and Python take a relevant part of each step",
    title_passed="Dispatch and Python take little of the step",
    why="Keras starts every step from Python, reads its metrics back and runs callbacks. Several "
    "steps in one call share that cost.",
    edit="compile(steps_per_execution=16), or a tf.function that loops over several batches.",
    cost="Callbacks and progress see every 16th step only; tracing takes longer.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(OVERHEAD, LITTLE, GAIN, INPUT_BOUND),
    severity="warn",
    effect_on_results="same results",
    frees=FREED_BY_FEWER_CALLS,
    tried_when_informing=True,
)

OWN_PYTHON_FIRST = "Python of the script's own takes most of that: deal with it first."
_OTHER_KIND = (
    "Several steps in one call, which is all that it advises, does not fit a loop that runs in a "
    "graph or hands its batches to several replicas."
)


def check_host_overhead(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop = session.diagnosed_loop()
    assert loop is not None
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    evidence = {
        "dispatch_percent": class_percent(session, ["dispatch"]),
        "python_percent": class_percent(session, ["python"]),
        "steps_per_execution": loop.keras.steps_per_execution if loop.keras else None,
    }
    place: Place = (loop.file, loop.line)
    if percent < LITTLE.value:
        return [HOST_OVERHEAD.finding("pass", "", place=place, evidence=evidence)]
    high = percent >= OVERHEAD.value
    if loop.kind not in ("keras", "eager", "tf_function"):
        status: FindingStatus = "not-applicable" if high else "pass"
        return [
            HOST_OVERHEAD.finding(
                status, _OTHER_KIND if high else "", place=place, evidence=evidence
            )
        ]
    other, edit = _other_rule(session, loop), several_steps_a_call(session, HOST_OVERHEAD.id)
    if other is not None and high:
        return [HOST_OVERHEAD.finding("informative", other, place=place, evidence=evidence)]
    if not high and (other is not None or edit is None):
        return [HOST_OVERHEAD.finding("pass", "", place=place, evidence=evidence)]
    waits, of_python = input_first(session), _without_python(session)
    little = of_python is not None and of_python < GAIN.value
    takes = f"Dispatch and Python take {percent:.0f} % of the step. "
    informs = little or not high or waits is not None
    return [
        HOST_OVERHEAD.finding(
            "informative" if informs else "fail",
            waits or f"{takes if informs else ''}{_advice(session, loop)}",
            place=place,
            evidence=evidence,
            edit=edit,
            effect=shared_calls_effect(session),
            untried=OWN_LOOP,
        )
    ]


def _other_rule(session: Session, loop: Loop) -> str | None:
    """Why this is not the rule to act on, or None."""
    if takes_the_steps(session):
        return OWN_PYTHON_FIRST
    if loop.keras is not None and on_torch(session):
        return (
            "On PyTorch each step is a call of its own: Keras refuses `steps_per_execution` there."
        )
    eager = loop.keras.run_eagerly if loop.keras else not loop.step_functions
    if eager or session.environment.run_functions_eagerly:
        return "The step runs eagerly: deal with eager-execution first."
    if loop.keras is not None and loop.keras.steps_per_execution > 1:
        return f"Already {loop.keras.steps_per_execution} steps share a call."
    return None


def _advice(session: Session, loop: Loop) -> str:
    if loop.from_python:
        return _advice_where_python_feeds(loop)
    if loop.keras is None:
        return (
            "Run several steps in one call: a tf.function that takes the iterator and loops with "
            f"`for _ in tf.range({STEPS_PER_CALL})`."
        )
    advice = (
        f"Let {STEPS_PER_CALL} steps share a call: "
        f"`compile(..., steps_per_execution={STEPS_PER_CALL})`."
    )
    if hooked := [callback.name for callback in per_batch_callbacks(session)]:
        advice += f" {', '.join(hooked)} then works once for all of them."
    return advice


def _advice_where_python_feeds(loop: Loop) -> str:
    """Such a loop has no iterator that a function could take."""
    made = (
        "Make a dataset of the arrays, such as "
        "`tf.data.Dataset.from_tensor_slices((x, y)).batch(n)`; what Python does to each batch "
        "belongs into a `map` of it, which runs beside the step. As it is, Python hands each step "
        "its batch, and several steps can share a call only where they take it themselves."
    )
    if any(_of_keras(function) for function in loop.step_functions):
        return (
            f"{made} Then call `model.fit(dataset)`, compiled with "
            f"`steps_per_execution={STEPS_PER_CALL}`."
        )
    return (
        f"{made} Then let a tf.function take its iterator and loop with "
        f"`for _ in tf.range({STEPS_PER_CALL})`."
    )


def _of_keras(function: str) -> bool:
    """Whether it is the step of `train_on_batch`."""
    return any(f"/{package}/" in function for package in ("keras", "tf_keras"))


def _without_python(session: Session) -> float | None:
    own = class_percent(session, ["python"]) - callbacks_percent(session)
    if session.steps is None:
        return None
    saved = session.steps.mean_ms * max(0.0, own) / 100.0
    return without(session, saved * (1 - 1 / STEPS_PER_CALL))


FIXED_COST = Threshold(
    "dispatch and Python",
    30.0,
    "% of the step",
    "own choice, twice XProf's 15 % for high host overhead: below it the rule only informs",
)
BATCH = Threshold(
    "batch size",
    256.0,
    "examples a replica",
    "own measurements on a small embedding model: 32 to 128 gave 2.7 times the examples per "
    "second, 32 to 512 five times. From it on the rule only informs",
)
SMALL_BATCH = Meta(
    id="small-batch",
    name="Small batch",
    title_failed="Dispatch and Python take much of each step, and its batch is small",
    title_informative="A larger batch may give more examples a second",
    title_passed="Dispatch and Python take little of the step",
    why="That part is paid once a step, however many examples it trains. A strategy divides the "
    "batch of the pipeline among its replicas, each of which pays it.",
    edit="A batch four times as large.",
    cost="Fewer updates an epoch: learning rate and number of epochs must be tuned again, and "
    "accuracy may suffer. More memory.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(FIXED_COST, BATCH, INPUT_BOUND),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=FREED_BY_FEWER_CALLS,
    tried_when_informing=True,
)

FACTOR = 4


def check_small_batch(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop, steps = session.diagnosed_loop(), session.steps
    assert loop is not None
    assert steps is not None
    size = steps.batch_size or loop.batch_size
    percent = class_percent(session, CALL_CLASSES) - callbacks_percent(session)
    evidence = {
        "batch_size": size,
        "replicas": loop.replicas,
        "fixed_cost_percent": percent,
        "step_ms": steps.mean_ms,
    }
    if size is None:
        return [
            SMALL_BATCH.finding("inconclusive", "The batch size is not known.", evidence=evidence)
        ]
    batch = next(iter(reversed(operations(session, *BATCHING))), None)
    place: Place = (batch.file, batch.line) if batch else (loop.file, loop.line)
    edit = _batch_edit(batch) if batch else None
    likely = size / loop.replicas < BATCH.value and percent >= FIXED_COST.value
    if not likely and (edit is None or not _could_gain(percent)):
        return [SMALL_BATCH.finding("pass", "", place=place, evidence=evidence)]
    advice = (
        f"Try a batch of {FACTOR * size} in place of {size}, and tune the learning rate again: "
        f"dispatch and Python take {percent:.0f} % of the step, and hardly grow with the "
        f"batch.{_divided(loop, size)}"
    )
    own = OWN_PYTHON_FIRST if takes_the_steps(session) else None
    waits = input_first(session) or own
    return [
        SMALL_BATCH.finding(
            "fail" if likely and waits is None else "informative",
            waits or advice,
            op=batch,
            place=place,
            evidence=evidence,
            speedup_at_most=FACTOR,
            edit=edit,
            untried="Keras or your own code makes the batches, where a trial can't change them.",
        )
    ]


def _could_gain(fixed_percent: float) -> bool:
    """Return True if a trial could confirm what a larger batch saves of the fixed cost."""
    return (bound(100.0, fixed_percent, calls=FACTOR) or 1.0) >= WORTHWHILE


def _divided(loop: Loop, size: int) -> str:
    if loop.replicas == 1:
        return ""
    return f" Each of {loop.replicas} replicas gets {size / loop.replicas:g} examples of it."


def _batch_edit(batch: Operation) -> Edit | None:
    size = batch.parameters.get("batch_size")
    if not isinstance(size, int):
        return None
    return Edit(
        id=f"{SMALL_BATCH.id}:{batch.id}",
        label=f"batches of {FACTOR * size} in place of {size} from the {place_name(batch)}",
        changes=(SetParameters(batch.id, {"batch_size": FACTOR * size}),),
        caveat="It counts examples per second; how well the model learns from larger batches is "
        "not measured.",
    )


EAGER_EXECUTION = Meta(
    id="eager-execution",
    name="Eager execution",
    title_failed="The training step runs eagerly, operation by operation",
    title_passed="The training step runs as a graph",
    why="Each operation is then started from Python by itself, and the compiler sees none of them "
    "together. It is meant for debugging.",
    edit="Remove run_eagerly, or put @tf.function on the step.",
    cost="Tracing takes time once; Python within the step (print, breakpoints, lists) runs only "
    "then.",
    needs=("loop",),
    thresholds=(),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=(*FREED_BY_FEWER_CALLS, "device_compute"),
)


def check_eager_execution(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    cause = _cause(session)
    if cause is None:
        return [EAGER_EXECUTION.finding("pass", "")]
    loop = session.diagnosed_loop()
    place: Place = (loop.file, loop.line) if loop else (None, None)
    return [
        EAGER_EXECUTION.finding(
            "fail",
            cause,
            place=place,
            evidence={
                "run_functions_eagerly": session.environment.run_functions_eagerly,
                "dispatch_and_python_percent": class_percent(session, CALL_CLASSES)
                if session.breakdown
                else None,
            },
            edit=_eager_edit(session),
            untried=_untried(session),
        )
    ]


def _eager_edit(session: Session) -> Edit | None:
    """The same model as a graph; None where not its own setting makes it eager."""
    loop = session.diagnosed_loop()
    if session.environment.run_functions_eagerly or loop is None or loop.keras is None:
        return None
    label = "run_eagerly=False in compile"
    return Edit(EAGER_EXECUTION.id, label, (SetModel({"run_eagerly": False}),))


def _untried(session: Session) -> str:
    if session.environment.run_functions_eagerly:
        return "The switch holds for the whole process, and other code may rely on it."
    return OWN_LOOP


def _cause(session: Session) -> str | None:
    loop = session.diagnosed_loop()
    if session.environment.run_functions_eagerly:
        return "Remove `tf.config.run_functions_eagerly(True)`."
    if loop is None:
        return None
    if loop.keras is not None:
        on = loop.keras.run_eagerly
        return "Compile without `run_eagerly=True`." if on else None
    if loop.kind == "eager" and loop.updates_variables and not loop.step_functions:
        return "Move the body of the loop into a function with `@tf.function`."
    return None
