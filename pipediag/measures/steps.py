"""The step time of the baseline, with the profiler, and on a repeated batch.

A repeated batch shows what the step costs when input is free (DS-Analyzer's synthetic data). It is
of one length: what a step of another length takes longer is tracing and compiling, as far as it is
no wait for the batch. XLA traces nothing for a new length, so no call tells of it, and a profile of
a few steps may hold none that compiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipediag.estimates import Measured, interval, resampled_means, resampled_medians
from pipediag.facts.step import lengths_vary
from pipediag.measures.recorded_windows import Building, step_ms, steps_ns, windows_of
from pipediag.session.loops import Differential, Perturbation, Steps
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import Timeline


def measure_steps(recording: Recording, loop: RecordedLoop) -> Steps | None:
    """Return step times of the loop's baseline, in milliseconds per batch; None without one. With
    `steps_per_execution` = k one sample is the time of a call divided by k."""
    samples = step_ms(recording, loop, "baseline")
    if not len(samples):
        return None
    mean = float(samples.mean())
    warmed = windows_of(recording, loop, "warmup")
    settled = [window.stable for window in warmed if window.stable is not None]
    return Steps(
        count=len(samples),
        warmup_count=len(step_ms(recording, loop, "warmup")),
        mean_ms=mean,
        median_ms=float(np.median(samples)),
        p95_ms=float(np.percentile(samples, 95)),
        ci95_ms=interval(resampled_medians(samples)),
        examples_per_s=1000.0 * loop.batch_size / mean if loop.batch_size else None,
        batch_size=loop.batch_size,
        first_step_ms=_ms(loop.first_step_ns),
        fill_ms=_ms(loop.fill_ns),
        retraces=len(loop.retrace_steps),
        trace_count=loop.trace_count,
        boundaries=loop.boundaries,
        batches_per_call=loop.batches_per_call,
        stable=settled[-1] if settled else True,
        samples_ms=[round(float(sample), 6) for sample in samples],
    )


def steps_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Return why there is no baseline step."""
    warmed = windows_of(recording, loop, "warmup")
    if not warmed:
        return "The training loop was not measured: no measuring window was opened for it."
    steps = len(step_ms(recording, loop, "warmup"))
    reason = warmed[-1].reason or "the loop ended first"
    return f"Only {steps} steps were seen, all of them warm-up: {reason}."


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def measure_perturbation(recording: Recording, loop: RecordedLoop) -> Perturbation | None:
    """Return mean profiled step over mean baseline step, by one clock; None without a baseline."""
    baseline = step_ms(recording, loop, "baseline")
    if not len(baseline):
        return None
    step = float(baseline.mean())
    profiled = step_ms(recording, loop, "profile")
    if not len(profiled):
        return Perturbation(
            baseline_step_ms=step,
            profiled_step_ms=None,
            ratio=None,
            missing=profile_missing(recording, loop),
        )
    slow = float(profiled.mean())
    return Perturbation(baseline_step_ms=step, profiled_step_ms=slow, ratio=slow / step)


def profile_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Return why there is no profile of this loop."""
    windows = windows_of(recording, loop, "profile")
    reason = windows[-1].reason if windows else None
    return f"No step was profiled: {reason or 'the loop ended first'}."


FEWEST_STEPS = 5
_OTHER_SEED = 31


@dataclass(frozen=True)
class ConsumerAlone:
    """The step on a repeated batch, and by how much of the baseline's it is shorter."""

    differential: Differential
    share: Measured


def measure_differential(recording: Recording, loop: RecordedLoop) -> ConsumerAlone | None:
    """Return None without enough steps on a repeated batch or in the baseline. Compares means, not
    medians: a pipeline that delivers in bursts has a fast median."""
    alone = step_ms(recording, loop, "repeat")
    baseline = step_ms(recording, loop, "baseline")
    if len(alone) < FEWEST_STEPS or len(baseline) < FEWEST_STEPS:
        return None
    alone_draws = resampled_means(alone, seed=_OTHER_SEED)
    draws = 100.0 * (1.0 - alone_draws / resampled_means(baseline))
    percent = max(0.0, 100.0 * (1.0 - float(alone.mean() / baseline.mean())))
    differential = Differential(
        step_ms=float(alone.mean()),
        ci95_ms=interval(alone_draws),
        steps=len(alone),
        input_share_percent=percent,
    )
    return ConsumerAlone(differential, Measured(percent, draws.clip(min=0.0)))


COMPILED_PERCENT = 5.0
"""Of the step, from which on it counts. Own choice, equal to the limit below which input wait is
fine."""

FASTEST_PERCENT = 25.0
ALIKE = 1.5
"""Where so many of the steps take hardly longer than on a repeated batch, nothing slows all of
them, as a fight for CPUs or for the interpreter lock does. Own choices."""

TRACED_PART = 0.75
"""Part of the measured steps that traced, from which each one counts as tracing. Own choice."""


def compiled_for_lengths(
    timeline: Timeline,
    recording: Recording,
    loop: RecordedLoop,
    native: Measured | None,
    alone: ConsumerAlone | None,
) -> Measured | None:
    """Return the share of the step that compiles for new lengths, by what a repeated batch
    (`alone`) is shorter than gap times (`native`) explain; None where none is seen."""
    if native is None or alone is None:
        return None
    building, steps = Building(timeline), steps_ns(recording, loop, "baseline")
    traced = sum(building.is_in(start, ns) for start, ns in steps.items())
    each_traces = traced > 0 and traced >= TRACED_PART * len(steps)
    if not each_traces and not _some_compile(recording, loop, alone):
        return None
    percent = alone.share.percent - native.percent
    if percent < COMPILED_PERCENT:
        return None
    return Measured(percent, (alone.share.draws - native.draws).clip(min=0.0))


def _some_compile(recording: Recording, loop: RecordedLoop, alone: ConsumerAlone) -> bool:
    keras = loop.keras
    if keras is None or not keras.jit_compile or not lengths_vary(loop.element_spec or ""):
        return False
    fastest_ms = np.percentile(step_ms(recording, loop, "baseline"), FASTEST_PERCENT)
    return bool(fastest_ms <= ALIKE * alone.differential.step_ms)
