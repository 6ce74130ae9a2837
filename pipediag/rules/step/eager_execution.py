"""A training step that runs operation by operation from Python."""

from __future__ import annotations

from pipediag.facts.step import CALL_CLASSES, FREED_BY_FEWER_CALLS, class_percent
from pipediag.rules.model_edits import OWN_LOOP
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, SetModel
from pipediag.session.findings import Finding
from pipediag.session.model import Session

META = Meta(
    id="eager-execution",
    name="Eager execution",
    title_failed="The training step runs eagerly, operation by operation",
    title_passed="The training step runs as a graph",
    looks_at="run_eagerly in compile, tf.config.run_functions_eagerly, and custom loops that "
    "update variables without a tf.function.",
    why="Each operation is then started from Python by itself, and the compiler sees none of them "
    "together. It is meant for debugging.",
    edit="Remove run_eagerly, or put @tf.function on the step.",
    cost="Tracing takes time once; Python within the step (print, breakpoints, lists) runs only "
    "then.",
    bound="What the graph would cost was not measured: all of the step but its input and copies.",
    needs=("loop",),
    thresholds=(),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=(*FREED_BY_FEWER_CALLS, "device_compute"),
)


def check(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    cause = _cause(session)
    if cause is None:
        return [META.finding("pass", "")]
    loop = session.diagnosed_loop()
    place: Place = (loop.file, loop.line) if loop else (None, None)
    return [
        META.finding(
            "fail",
            cause,
            place=place,
            evidence={
                "run_functions_eagerly": session.environment.run_functions_eagerly,
                "dispatch_and_python_percent": class_percent(session, CALL_CLASSES)
                if session.breakdown
                else None,
            },
            edit=_edit(session),
            untried=_untried(session),
        )
    ]


def _edit(session: Session) -> Edit | None:
    """The same model as a graph; None where not its own setting makes it eager."""
    loop = session.diagnosed_loop()
    if session.environment.run_functions_eagerly or loop is None or loop.keras is None:
        return None
    label = "run_eagerly=False in compile"
    return Edit(META.id, label, (SetModel({"run_eagerly": False}),))


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
