"""What a free input pipeline would buy, and what the step would be bound by then."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pipediag.measures.bootstrap import interval
from pipediag.measures.step.input_share import Measured
from pipediag.session.loops import LoopTime
from pipediag.session.steps import Ceiling, Share
from pipediag.vocabulary import StepClass

_LEAST_CONSUMER_PERCENT = 0.1
"""Below it the ceiling is a division by noise: a thousandfold gain would be claimed."""


def measure_ceiling(
    input_wait: Measured, breakdown: Mapping[StepClass, Share], time: LoopTime | None = None
) -> Ceiling:
    """Step divided by consumer time, with a 95 % interval, and the largest class of the rest.

    Step and wait are the breakdown's, so that the two say the same. `unattributed` names no
    bottleneck: where it is all there is, the next one is None.
    """
    consumer = 100.0 - breakdown["input_wait"].percent
    if consumer < _LEAST_CONSUMER_PERCENT:
        return Ceiling(
            speedup_if_input_free=None,
            next_bottleneck=None,
            missing="The step is input wait alone; how fast the consumer is can't be told.",
        )
    draws = 100.0 / np.clip(100.0 - input_wait.draws, _LEAST_CONSUMER_PERCENT, None)
    return Ceiling(
        speedup_if_input_free=100.0 / consumer,
        ci95=interval(draws),
        next_bottleneck=_largest(breakdown),
        loop_speedup_if_input_free=_of_loop(time, breakdown) if time is not None else None,
    )


def _of_loop(time: LoopTime, breakdown: Mapping[StepClass, Share]) -> float | None:
    """None where next to nothing would be left, as that is a division by noise too.

    What the mean step of the breakdown takes longer than that of the loop's time are waits for
    first batches, which count once.
    """
    first_batch_ms = max(0.0, sum(share.ms for share in breakdown.values()) - time.step_ms)
    waited_ms = min(time.step_ms, max(0.0, breakdown["input_wait"].ms - first_batch_ms))
    waited_in_steps = time.steps_s * waited_ms / time.step_ms if time.step_ms else 0.0
    left = time.total_s - time.first_batches_s - waited_in_steps
    if left < time.total_s * _LEAST_CONSUMER_PERCENT / 100.0:
        return None
    return time.total_s / left


def _largest(breakdown: Mapping[StepClass, Share]) -> StepClass | None:
    named = {
        name: share.percent
        for name, share in breakdown.items()
        if name not in ("input_wait", "unattributed") and share.percent > 0
    }
    return max(named, key=lambda name: named[name], default=None)
