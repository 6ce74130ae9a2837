"""The loops of the script, and which of them is diagnosed."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from pipediag.measures.loop.time import seen_s, time_missing, time_of
from pipediag.measures.recorded_windows import step_ms
from pipediag.measures.step.differential import FEWEST_STEPS
from pipediag.session.loops import KerasUse, Loop
from pipediag.session.recording import RecordedLoop, Recording


def diagnosed_loop(recording: Recording) -> RecordedLoop | None:
    """The training loop that costs most; None where nothing trained.

    A loop with a baseline goes before one without: an expensive loop that was cut off in its
    warm-up has nothing to diagnose. Among equals the first.
    """
    training = [loop for loop in recording.loops if loop.role == "training"]

    def rank(loop: RecordedLoop) -> tuple[bool, float]:
        measured = len(step_ms(recording, loop, "baseline")) >= FEWEST_STEPS
        return measured, cost_s(recording, loop)

    return max(training, key=rank, default=None)


def cost_s(recording: Recording, loop: RecordedLoop) -> float:
    """What the loop takes in full, in seconds: as projected, or what it took while it was seen."""
    projected = projected_s(recording, loop)
    return seen_s(loop) if projected is None else projected


def projected_s(recording: Recording, loop: RecordedLoop) -> float | None:
    """Planned steps times their mean, with start and ends of epochs as far as they were seen.

    No less than the loop has taken already. None where the script does not say how many steps it
    plans.
    """
    if loop.planned_steps is None:
        return None
    time = time_of(recording, loop)
    if time is not None and loop.asked_ns is not None and loop.warm_ns is not None:
        return max(seen_s(loop), (loop.warm_ns - loop.asked_ns) / 1e9 + time.total_s)
    median = median_step_ms(recording, loop)
    if median is None:
        return None
    return max(seen_s(loop), median * loop.planned_steps / 1000.0)


def median_step_ms(recording: Recording, loop: RecordedLoop) -> float | None:
    """Per batch, from the baseline, or else from the warm-up, or else from the elapsed time.

    The last two include the first step.
    """
    for kind in ("baseline", "warmup"):
        samples = step_ms(recording, loop, kind)
        if len(samples):
            return float(np.median(samples))
    return loop.elapsed_ns / 1e6 / loop.steps if loop.steps else None


def loop_rows(recording: Recording, diagnosed: RecordedLoop | None) -> list[Loop]:
    """Every loop of the script, in the order in which they began."""
    return [_row(recording, loop, loop is diagnosed) for loop in recording.loops]


def _row(recording: Recording, loop: RecordedLoop, diagnosed: bool) -> Loop:
    time = time_of(recording, loop) if loop.role == "training" else None
    return Loop(
        id=loop.id,
        kind=loop.kind,
        role=loop.role,
        role_reason=loop.role_reason,
        diagnosed=diagnosed,
        file=loop.file,
        line=loop.line,
        function=loop.function,
        steps=loop.steps,
        elapsed_s=seen_s(loop),
        median_step_ms=median_step_ms(recording, loop),
        projected_s=projected_s(recording, loop),
        time=time,
        time_missing=time_missing(loop) if time is None and loop.role == "training" else None,
        batch_size=loop.batch_size,
        planned_steps=loop.planned_steps,
        updates_variables=loop.updates_variables,
        iterators=loop.iterators,
        replicas=loop.replicas,
        keras=KerasUse.model_validate(asdict(loop.keras)) if loop.keras else None,
        step_functions=loop.step_functions,
        beside=loop.beside,
        element_spec=loop.element_spec,
        untried=loop.untried,
    )
