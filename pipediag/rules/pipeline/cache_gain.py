"""What a cache buys, over all epochs."""

from __future__ import annotations

import math

from pipediag.facts.pipeline import delay_ms, downstream, measured_at
from pipediag.facts.step import class_ms
from pipediag.rules.prediction import less_input
from pipediag.rules.rule import Prediction
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation


def gain_of_cache(session: Session, op: Operation, passes: float | None) -> Prediction:
    """The delays of the operation and of all above it end with the first pass."""
    cost_at = measured_at(session, op).id
    left = sum(
        delay_ms(session, other) or 0.0
        for other in downstream(session, op)
        if measured_at(session, other).id != cost_at
    )
    later = less_input(session, max(0.0, class_ms(session, ["input_wait"]) - left), on_cpu=False)
    if later.speedup is None or passes is None or passes == math.inf:
        return later
    return Prediction(round(passes / (1 + (passes - 1) / later.speedup), 3))
