"""Callbacks that cost time after every batch."""

from __future__ import annotations

from pathlib import PurePath

from pipediag.facts.bounds import bound
from pipediag.facts.callbacks import (
    callback_percent,
    lines_of,
    per_batch_callbacks,
    sampled_percent,
)
from pipediag.facts.limits import INPUT_BOUND, Threshold
from pipediag.facts.machine import on_accelerator
from pipediag.facts.step import FREED_BY_FEWER_CALLS, class_percent, most_percent
from pipediag.rules.relevance import input_first
from pipediag.rules.rule import Meta, Place
from pipediag.session.edits import Edit, SkipCallback
from pipediag.session.findings import Finding
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar, StepClass

CALLBACK_SHARE = Threshold(
    "time in the callback",
    5.0,
    "% of the step",
    "own choice, equal to the limit on input wait",
)
META = Meta(
    id="batch-callback",
    name="Per-batch callback",
    title_failed="A callback takes a relevant part of every step",
    title_passed="No callback takes a relevant part of the step",
    looks_at="Callbacks of the user that override per-batch methods, and what these take of the "
    "step: clocked while stacks are sampled, or by the samples that fall into them.",
    why="Keras waits for the device after every batch and then runs each callback; nothing else "
    "runs meanwhile.",
    edit="Do the work every hundredth batch, or in on_epoch_end.",
    cost="The callback sees fewer values.",
    bound="The callback's part of the step and other work for each call fall away; without an "
    "accelerator compute too, which runs on the same CPUs.",
    needs=("loop", "keras", "steps"),
    thresholds=(CALLBACK_SHARE, INPUT_BOUND),
    severity="warn",
    effect_on_results="same results",
    frees=("python", "device_wait"),
    tried_when_informing=True,
)

CAVEAT = (
    "The callback's batch hooks were left out altogether: to work at every hundredth batch gets "
    "near that, and only you know whether you need it at each."
)


def check(session: Session) -> list[Finding]:
    """One finding for each callback with per-batch methods."""
    per_batch = per_batch_callbacks(session)
    if not per_batch:
        return [META.finding("not-applicable", "No callback works after every batch.")]
    if session.host is None:
        reason = session.host_missing or "The Python stacks were not sampled."
        return [META.finding("inconclusive", reason)]
    return [_finding(session, callback) for callback in per_batch]


def _finding(session: Session, callback: Callback) -> Finding:
    lines = lines_of(session, callback)
    percent = callback_percent(session, callback)
    hottest = max(lines, key=lambda line: line.percent, default=None)
    evidence: dict[str, Scalar] = {
        "callback": callback.name,
        "callback_percent_of_step": percent,
        "callback_percent_of_samples": sampled_percent(session, callback),
        "python_percent_of_step": class_percent(session, ["python"]) if session.breakdown else None,
    }
    place: Place = (callback.file, callback.line)
    if percent < CALLBACK_SHARE.value:
        return META.finding("pass", "", place=place, evidence=evidence)
    if waits := input_first(session):
        return META.finding(
            "informative", waits, place=place, evidence=evidence, edit=_left_out(callback)
        )
    hooks = ", ".join(callback.batch_hooks)
    return META.finding(
        "fail",
        f"{callback.name} ({hooks}) runs for {percent:.0f} % of the time: work only when `batch % "
        f"100 == 0`, or once in `on_epoch_end`.{_where(hottest)}",
        place=place,
        evidence=evidence,
        speedup_at_most=_at_most(session, percent),
        edit=_left_out(callback),
    )


def _left_out(callback: Callback) -> Edit:
    """The steps without it; a script that goes on has none of its callbacks called for a trial."""
    return Edit(
        id=f"{META.id}:{callback.name}:{callback.line}",
        label=f"the batch hooks of {callback.name} left out",
        changes=(SkipCallback(callback.name, callback.file, callback.line),),
        caveat=CAVEAT,
    )


def _where(hottest: HotLine | None) -> str:
    return f" Its hottest line is {PurePath(hottest.file).name}:{hottest.line}." if hottest else ""


def _at_most(session: Session, percent: float) -> float | None:
    """Return the bound without the callback and what was seen to get shorter with it: results that
    are read for it after each batch, and compute where both share the CPUs."""
    classes: list[StepClass] = [*FREED_BY_FEWER_CALLS]
    if not on_accelerator(session.environment.devices):
        classes.append("device_compute")
    return bound(100.0, max(percent, most_percent(session, classes)))
