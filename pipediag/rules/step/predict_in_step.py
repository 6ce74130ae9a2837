"""Keras' `predict` or `evaluate` called in each step of a training."""

from __future__ import annotations

from pipediag.facts.amounts import exact_time
from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.loops import NestedCall
from pipediag.session.model import Session

SHARE = Threshold(
    "`predict` in a step",
    10.0,
    "% of the step",
    "own choice: less than this is seldom worth another way to call the model",
)
META = Meta(
    id="predict-in-step",
    name="Predict in the step",
    title_failed="`predict` is called in each step, which makes a dataset and a loop for one batch",
    title_passed="What the step predicts takes little of it",
    looks_at="Keras' `predict` and `evaluate`, called between two steps of a loop that calls "
    "`train_on_batch` or a training function itself; the time from call to return.",
    why="`predict` is made for whole data sets: each call makes a tf.data pipeline, an iterator "
    "and callbacks, which for one batch take longer than the model.",
    edit="`model(x, training=False)`, or `model.predict_on_batch(x)`, in its place.",
    cost="`predict_on_batch` gives a NumPy array as `predict` does; `model(x)` gives a tensor.",
    bound="At most what the step is without these calls: the model itself still runs.",
    needs=("loop", "steps"),
    thresholds=(SHARE,),
    severity="warn",
    effect_on_results="same results",
    frees=("compile", "dispatch", "python"),
    untried="It needs the call changed in your code.",
)
_NOTHING_LEFT = 99.0


def check(session: Session) -> list[Finding]:
    """One finding for each place that predicts in the steps of the diagnosed loop."""
    loop = session.diagnosed_loop()
    assert loop is not None
    if not loop.nested:
        return [META.finding("not-applicable", "No step calls `predict` or `evaluate`.")]
    return [_finding(call) for call in sorted(loop.nested, key=lambda call: -call.percent)]


def _finding(call: NestedCall) -> Finding:
    place = (call.file, call.line)
    evidence = {"took_percent_of_step": call.percent, "ms_per_call": call.ms}
    if call.percent < SHARE.value:
        return META.finding("pass", "", place=place, evidence=evidence)
    at, took = f" at line {call.line}" if call.line else "", exact_time(call.ms)
    advice = (
        f"Call the model itself in place of `{call.what}`{at}: `model(x, training=False)` where a "
        "tensor will do, or `model.predict_on_batch(x)`. It takes "
        f"{call.percent:.0f} % of each step ({took} a call), most of it for making a dataset and "
        "an iterator of one batch."
    )
    if call.what == "evaluate":
        advice = (
            f"`evaluate`{at} takes {call.percent:.0f} % of each step ({took} a call): "
            "evaluate every so many steps, or call `model.test_on_batch(x, y)`."
        )
    most = min(call.percent, _NOTHING_LEFT)
    return META.finding(
        "fail",
        advice,
        place=place,
        evidence=evidence,
        speedup_at_most=100.0 / (100.0 - most),
    )
