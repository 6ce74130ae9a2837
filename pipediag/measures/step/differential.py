"""The differential phase: the consumer alone on a repeated batch, compared with the baseline.

After DS-Analyzer's synthetic-data run: what the step costs when input is free.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipediag.measures.bootstrap import Floats, interval, resampled_means
from pipediag.measures.recorded_windows import step_ms, windows_of
from pipediag.session.record import Interval
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.steps import Differential

FEWEST_STEPS = 5
_OTHER_SEED = 31


@dataclass(frozen=True)
class ConsumerAlone:
    """The measure, and its resampled input shares in percent (clipped at 0), shape (draws,)."""

    differential: Differential
    share_draws: Floats

    @property
    def interval(self) -> Interval:
        return interval(self.share_draws)


def measure_differential(recording: Recording, loop: RecordedLoop) -> ConsumerAlone | None:
    """None where the batch was not repeated for enough steps, or there is no baseline.

    Compares means, not medians: a pipeline that delivers in bursts has a fast median.
    """
    alone = step_ms(recording, loop, "repeat")
    baseline = step_ms(recording, loop, "baseline")
    if len(alone) < FEWEST_STEPS or len(baseline) < FEWEST_STEPS:
        return None
    alone_draws = resampled_means(alone, seed=_OTHER_SEED)
    shares = 100.0 * (1.0 - alone_draws / resampled_means(baseline))
    return ConsumerAlone(
        Differential(
            step_ms=float(alone.mean()),
            ci95_ms=interval(alone_draws),
            steps=len(alone),
            input_share_percent=max(0.0, 100.0 * (1.0 - float(alone.mean() / baseline.mean()))),
        ),
        shares.clip(min=0.0),
    )


def differential_missing(recording: Recording, loop: RecordedLoop) -> str:
    """Why the consumer was not measured alone."""
    if loop.kind == "distributed":
        return "A distributed iterator hands batches to several replicas; none can be repeated."
    steps = len(step_ms(recording, loop, "repeat"))
    if windows_of(recording, loop, "repeat"):
        return f"The repeated batch was seen for {steps} steps only; {FEWEST_STEPS} are needed."
    if loop.unrepeated is not None:
        return f"The batch was not repeated: {loop.unrepeated}."
    return "The batch was not repeated: the loop ended first, or went on by itself."
