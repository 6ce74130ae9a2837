"""Functions that are traced and compiled anew again and again over the run."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.limits import Threshold
from pipediag.rules.few_shapes import TRACES_LEFT, loop_on_many_shapes, ways
from pipediag.rules.rule import Meta
from pipediag.rules.run.relevance import NOTABLE, THRESHOLDS, weigh
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session

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
META = Meta(
    id="repeated-compile",
    name="Repeated compiling",
    title_failed="Training stands still while the same function is traced and compiled again",
    title_passed="Each function is traced and compiled once or twice",
    looks_at="How often functions of the script, and the steps that Keras makes of a model, were "
    "traced and compiled in the whole run, by their places, and how long that took. One that is "
    "traced once, however slowly, is left alone.",
    why="A new model, a new `compile` and a new tf.function each start from nothing: their graph "
    "is "
    "traced and compiled anew, although it is the same as before.",
    edit="Build and compile the model once, and start each fold or configuration from the same "
    "weights and a fresh optimizer state. Define a tf.function once, outside of the loop; give it "
    "tensors in place of Python numbers, and `reduce_retracing=True` where lengths vary.",
    cost="All of the state has to be set back by hand: weights, the optimizer's variables, and "
    "seeds of dropout. The learning rate is one of these variables: what differs from round to "
    "round has to be set after them. Models of different form need one trace each.",
    bound="By the ledger: what its traces took, as measured or projected, without those that "
    "remain: one of each place, two of a function whose batches vary in length. To set weights "
    "back takes next to nothing beside that.",
    needs=("loop", "run"),
    thresholds=(AGAIN, OWN_AGAIN, *THRESHOLDS),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("compile",),
    sees_class_only=True,
    untried="It needs the code around the training changed; what compiling took is in the run's "
    "ledger.",
)


def check(session: Session) -> list[Finding]:
    """One finding on all places where something was traced too often."""
    run = session.run
    assert run is not None
    if run.scope != "run":
        return [_in_what_was_seen(session, run)]
    repeated = [row for row in run.parts if row.part == "compile" and _again(row)]
    if not repeated:
        return [META.finding("pass", "", part="compile")]
    saved_s = sum(_saved_s(session, row) for row in repeated)
    weight = weigh(run, repeated, saved_s)
    worst = max(repeated, key=lambda row: row.seconds)
    advice = _advice(session, worst, repeated)
    if weight.status != "fail":
        advice = weight.sentence and f"{weight.sentence} {advice}"
    return [
        META.finding(
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
    saved_s = sum(_saved_s(session, row) for row in repeated)
    percent = 100.0 * saved_s / max(run.total_s, 1e-9)
    if not run.seen:
        reason = "The ledger is of a part of the training, which doesn't tell how often it comes."
        return META.finding("not-applicable", reason, part="compile")
    if percent < NOTABLE.value:
        return META.finding("pass", "", part="compile")
    worst = max(repeated, key=lambda row: row.seconds)
    return META.finding(
        "informative",
        f"How long all of the training is, nobody knows; of the {run.total_s:.1f} s that were seen "
        f"of the run, this could have saved {percent:.0f} %. {_advice(session, worst, repeated)}",
        place=(worst.file, worst.line),
        evidence={
            "taken_s": sum(row.seconds for row in repeated),
            "savable_percent_of_what_was_seen": percent,
            "traces": worst.count,
        },
        part="compile",
    )


def _saved_s(session: Session, row: RunPart) -> float:
    """Of what its traces took, all but that of those that remain."""
    traces = row.count or 1
    left = TRACES_LEFT if _on_many_shapes(session, row) is not None else 1
    return row.seconds * (1.0 - min(left, traces) / traces)


def _on_many_shapes(session: Session, row: RunPart) -> Loop | None:
    return loop_on_many_shapes(session, row.what or "", row.line)


def _again(row: RunPart) -> bool:
    limit = AGAIN if (row.what or "").startswith(_OF_KERAS) else OWN_AGAIN
    return row.count is not None and row.count >= limit.value


def _advice(session: Session, worst: RunPart, repeated: Sequence[RunPart]) -> str:
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
