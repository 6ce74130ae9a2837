"""Python that runs in every step: callbacks, the script's own lines, calls of `predict`."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

import numpy as np

from pipediag.facts.limits import INPUT_BOUND, Threshold, bound
from pipediag.facts.machine import on_accelerator
from pipediag.facts.names import exact_time
from pipediag.facts.python_callables import (
    callback_percent,
    lines_of,
    per_batch_callbacks,
    sampled_percent,
)
from pipediag.facts.step import FREED_BY_FEWER_CALLS, class_ms, class_percent, most_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit, SkipCallback
from pipediag.session.findings import Finding
from pipediag.session.loops import NestedCall
from pipediag.session.model import HotLine, Session
from pipediag.session.recorded_loops import Callback
from pipediag.vocabulary import StepClass

CALLBACK_SHARE = Threshold(
    "time in the callback", 5.0, "% of the step", "own choice, as for input wait"
)
BATCH_CALLBACK = Meta(
    id="python-in-step",
    name="Per-batch callback",
    title_failed="Run the callback less often than in every step",
    title_passed="No callback takes a relevant part of the step",
    why="Keras waits for the device after every batch and then runs each callback; nothing else "
    "runs meanwhile.",
    edit="Do the work every hundredth batch, or in on_epoch_end.",
    cost="The callback sees fewer values.",
    needs=("loop", "keras", "steps"),
    thresholds=(CALLBACK_SHARE, INPUT_BOUND),
    frees=("python", "device_wait"),
    tried_when_informing=True,
)
CAVEAT = (
    "The callback's batch hooks were left out altogether: to work at every hundredth batch gets "
    "near that, and only you know whether you need it at each."
)


def check_batch_callback(session: Session) -> list[Finding]:
    """Return a finding on each callback with per-batch methods."""
    per_batch = per_batch_callbacks(session)
    if not per_batch:
        return [BATCH_CALLBACK.finding("not-applicable", "No callback works after every batch.")]
    if session.host is None:
        reason = session.host_missing or "The Python stacks were not sampled."
        return [BATCH_CALLBACK.finding("inconclusive", reason)]
    return [_of_callback(session, callback) for callback in per_batch]


def _of_callback(session: Session, callback: Callback) -> Finding:
    percent, waits = callback_percent(session, callback), input_first(session)
    hottest = max(lines_of(session, callback), key=lambda line: line.percent, default=None)
    finding = partial(
        BATCH_CALLBACK.finding,
        place=(callback.file, callback.line),
        evidence={
            "callback": callback.name,
            "callback_percent_of_step": percent,
            "callback_percent_of_samples": sampled_percent(session, callback),
            "python_percent_of_step": class_percent(session, ["python"])
            if session.breakdown
            else None,
        },
        edit=Edit(
            id=f"{BATCH_CALLBACK.id}:{callback.name}:{callback.line}",
            label=f"the batch hooks of {callback.name} left out",
            changes=(SkipCallback(callback.name, callback.file, callback.line),),
            caveat=CAVEAT,
        ),
    )
    if percent < CALLBACK_SHARE.value:
        return finding("pass")
    if waits:
        return finding("informative", waits)
    # Results that are read for it get shorter too, and compute where both share the CPUs.
    classes: list[StepClass] = [*FREED_BY_FEWER_CALLS]
    if not on_accelerator(session.environment.devices):
        classes.append("device_compute")
    where = f" Its hottest line is {_place(hottest)}." if hottest else ""
    return finding(
        "fail",
        f"{callback.name} ({', '.join(callback.batch_hooks)}) runs for {percent:.0f} % of the "
        f"time: work only when `batch % 100 == 0`, or once in `on_epoch_end`.{where}",
        speedup_at_most=bound(100.0, max(percent, most_percent(session, classes))),
    )


PYTHON = Threshold(
    "Python", 30.0, "% of the step", "own measurements: calling a tf.function takes 23 % of 0.6 ms"
)
PYTHON_MS = Threshold(
    "Python", 0.3, "ms a step", "own measurements: twice what calling a tf.function takes"
)
LONG = Threshold(
    "Python of a longer step", 15.0, "% of the step", "own choice: less is little to gain"
)
LONG_MS = Threshold(
    "Python of a longer step", 1.0, "ms a step", "own choice: several times what a call takes"
)
SEEN = Threshold(
    "own lines", 1.0, "% of the stack samples", "own choice: some, as a sampler meets them rarely"
)
OWN_PYTHON = Meta(
    id="python-in-step",
    name="Own Python in each step",
    title_failed="Run Python less often than in every step",
    title_passed="Python takes little of the step",
    why="What a loop does with each batch on the host (a metric over all that was seen so far, "
    "lists of values, logging) keeps the device waiting for the next call.",
    edit="Do it every hundredth step or once an epoch; keep sums in tensors, and read them with "
    "`.numpy()` where they are printed.",
    cost="What is looked at is looked at less often.",
    needs=("loop", "steps", "breakdown", "host"),
    thresholds=(PYTHON, PYTHON_MS, LONG, LONG_MS, SEEN, INPUT_BOUND),
    frees=("python", "device_wait"),
    untried="It needs the loop's own lines changed in your code.",
)
_MOST_NAMED = 3


def check_own_python(session: Session) -> list[Finding]:
    """Return a finding on the diagnosed loop."""
    loop, host, steps = session.diagnosed_loop(), session.host, session.steps
    assert loop is not None
    assert host is not None
    assert steps is not None
    if loop.kind == "keras" or not loop.step_functions:
        reason = "The loop is Keras' own, or its steps run eagerly, which another rule covers."
        return [OWN_PYTHON.finding("not-applicable", reason)]
    lines = [line for line in host.hot_python if line.thread == "main"]
    lines.sort(key=lambda line: -line.percent)
    seen = sum(line.percent for line in lines)
    percent, ms = class_percent(session, ["python"]), class_ms(session, ["python"])
    evidence = {"python_percent": percent, "own_lines_percent": seen}
    finding = partial(OWN_PYTHON.finding, evidence=evidence)
    of_short = percent >= PYTHON.value and ms >= PYTHON_MS.value
    if not of_short and (percent < LONG.value or ms < LONG_MS.value):
        return [finding("pass", place=(loop.file, loop.line))]
    takes = f"Python takes {percent:.0f} % of each step ({exact_time(ms)})"
    if seen < SEEN.value:
        nowhere = (
            f"{takes}. The stack samples met next to no line of the script's own in it: which "
            "Python it is, they don't tell."
        )
        return [finding("informative", nowhere, place=(loop.file, loop.line))]
    place = (lines[0].file, lines[0].line)
    if waits := input_first(session):
        return [finding("informative", waits, place=place)]
    named = list(dict.fromkeys(_with_function(line) for line in lines))[:_MOST_NAMED]
    where = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    short_ms = float(np.percentile(steps.samples_ms, 5))
    return [
        finding(
            "fail",
            f"{takes}, by the profile. Of the script's own lines, stack samples met {where} most "
            "often: do that every hundredth step or once an epoch, or keep sums in tensors.",
            place=place,
            speedup_at_most=max(bound(100.0, percent) or 1.0, steps.mean_ms / short_ms),
        )
    ]


def takes_the_steps(session: Session) -> bool:
    """Return True if the loop's own Python is what its steps spend on the host."""
    if session.diagnosed_loop() is None or session.host is None or session.steps is None:
        return False
    return any(finding.status == "fail" for finding in check_own_python(session))


def _place(line: HotLine) -> str:
    return f"{PurePath(line.file).name}:{line.line}"


def _with_function(line: HotLine) -> str:
    at = _place(line)
    return at if line.function == "<module>" else f"{at} (`{line.function}`)"


SHARE = Threshold(
    "`predict` in a step", 10.0, "% of the step", "own choice: less is seldom worth a change"
)
PREDICT_IN_STEP = Meta(
    id="predict-in-step",
    name="Predict in the step",
    title_failed="Call the model itself instead of `predict` in each step",
    title_passed="What the step predicts takes little of it",
    why="`predict` is made for whole data sets: each call makes a tf.data pipeline, an iterator "
    "and callbacks, which for one batch take longer than the model.",
    edit="`model(x, training=False)`, or `model.predict_on_batch(x)`, in its place.",
    cost="`predict_on_batch` gives a NumPy array as `predict` does; `model(x)` gives a tensor.",
    needs=("loop", "steps"),
    thresholds=(SHARE,),
    frees=("compile", "dispatch", "python"),
    untried="It needs the call changed in your code.",
)


def check_predict_in_step(session: Session) -> list[Finding]:
    """Return a finding on each place that predicts in the steps of the diagnosed loop."""
    loop = session.diagnosed_loop()
    assert loop is not None
    if not loop.nested:
        return [PREDICT_IN_STEP.finding("not-applicable", "No step calls `predict` or `evaluate`.")]
    return [_of_call(call) for call in sorted(loop.nested, key=lambda call: -call.percent)]


def _of_call(call: NestedCall) -> Finding:
    at = f" at line {call.line}" if call.line else ""
    takes = f"takes {call.percent:.0f} % of each step ({exact_time(call.ms)} a call)"
    advice = (
        f"Call the model itself in place of `{call.what}`{at}: `model(x, training=False)` where a "
        f"tensor will do, or `model.predict_on_batch(x)`. It {takes}, most of it for making a "
        "dataset and an iterator of one batch."
    )
    if call.what == "evaluate":
        advice = (
            f"`evaluate`{at} {takes}: evaluate every so many steps, or call "
            "`model.test_on_batch(x, y)`."
        )
    fails = call.percent >= SHARE.value
    return PREDICT_IN_STEP.finding(
        "fail" if fails else "pass",
        advice if fails else "",
        place=(call.file, call.line),
        evidence={"took_percent_of_step": call.percent, "ms_per_call": call.ms},
        speedup_at_most=100.0 / (100.0 - min(call.percent, 99.0)),
    )
