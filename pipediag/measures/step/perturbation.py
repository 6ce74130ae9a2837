"""What the profiler did to the step time."""

from __future__ import annotations

from pipediag.measures.recorded_windows import step_ms, windows_of
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.steps import Perturbation


def measure_perturbation(recording: Recording, loop: RecordedLoop) -> Perturbation | None:
    """Mean profiled step over mean baseline step; None without a baseline.

    The profile window's steps are timed by the same clock as the baseline's.
    """
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
    """Why there is no profile of this loop."""
    windows = windows_of(recording, loop, "profile")
    reason = windows[-1].reason if windows else None
    return f"No step was profiled: {reason or 'the loop ended first'}."
