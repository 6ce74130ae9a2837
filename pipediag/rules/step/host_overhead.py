"""The fixed cost of starting each step from Python."""

from __future__ import annotations

from pipediag.facts.callbacks import callbacks_percent, per_batch_callbacks
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.step import CALL_CLASSES, FREED_BY_FEWER_CALLS, class_percent
from pipediag.facts.undivided import on_torch
from pipediag.rules.bounds import without
from pipediag.rules.model_edits import (
    OWN_LOOP,
    STEPS_PER_CALL,
    several_steps_a_call,
    shared_calls_effect,
)
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.rules.step import own_python
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
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
META = Meta(
    id="host-overhead",
    name="Host overhead per step",
    title_failed="Dispatch and Python take a relevant part of each step",
    title_passed="Dispatch and Python take little of the step",
    looks_at="The part of the step in operation dispatch and Python without the user's callbacks, "
    "and how many steps one call runs.",
    why="Keras starts every step from Python, reads its metrics back and runs callbacks. Several "
    "steps in one call share that cost.",
    edit="compile(steps_per_execution=16), or a tf.function that loops over several batches.",
    cost="Callbacks and progress see every 16th step only; tracing takes longer.",
    bound="15 of 16 parts of the Python class fall away, and without an "
    "accelerator of 88 % of dispatch too; with one, dispatch is launching and stays, so this is a "
    "cautious figure.",
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


def check(session: Session) -> list[Finding]:
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
        return [META.finding("pass", "", place=place, evidence=evidence)]
    high = percent >= OVERHEAD.value
    if loop.kind not in ("keras", "eager", "tf_function"):
        status: FindingStatus = "not-applicable" if high else "pass"
        return [META.finding(status, _OTHER_KIND if high else "", place=place, evidence=evidence)]
    other, edit = _other_rule(session, loop), several_steps_a_call(session, META.id)
    if other is not None and high:
        return [META.finding("informative", other, place=place, evidence=evidence)]
    if not high and (other is not None or edit is None):
        return [META.finding("pass", "", place=place, evidence=evidence)]
    waits, of_python = input_first(session), _without_python(session)
    little = of_python is not None and of_python < GAIN.value
    takes = f"Dispatch and Python take {percent:.0f} % of the step. "
    informs = little or not high or waits is not None
    return [
        META.finding(
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
    if own_python.takes_the_steps(session):
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
