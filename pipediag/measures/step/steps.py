"""The step time of the baseline window, measured without a profiler."""

from __future__ import annotations

import numpy as np

from pipediag.measures.bootstrap import interval, resampled_medians
from pipediag.measures.recorded_windows import step_ms, windows_of
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.steps import Steps


def measure_steps(recording: Recording, loop: RecordedLoop) -> Steps | None:
    """Step times of the loop's baseline, in milliseconds per batch; None without a baseline step.

    `count` is the number of timed intervals: with `steps_per_execution` = k an interval is one call
    of k batches, and its time divided by k is one sample. The interval is that of the median.
    """
    samples = step_ms(recording, loop, "baseline")
    if not len(samples):
        return None
    mean = float(samples.mean())
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
        seams=loop.seams,
        batches_per_call=loop.batches_per_call,
        stable=_settled(recording, loop),
        samples_ms=[round(float(sample), 6) for sample in samples],
    )


def steps_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Why there is no baseline step."""
    warmed = windows_of(recording, loop, "warmup")
    if not warmed:
        return "The training loop was not measured: no window was opened for it."
    steps = len(step_ms(recording, loop, "warmup"))
    reason = warmed[-1].reason or "it ended first"
    return f"Only {steps} steps were seen, all of them warm-up: {reason}."


def _settled(recording: Recording, loop: RecordedLoop) -> bool:
    """Whether the step time had settled when the baseline began."""
    known = [w.stable for w in windows_of(recording, loop, "warmup") if w.stable is not None]
    return known[-1] if known else True


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6
