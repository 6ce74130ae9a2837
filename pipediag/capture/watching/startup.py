"""The first two steps of a loop tell what starting it up took."""

from __future__ import annotations

from pipediag.capture.loops.loop import Consumer
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.watching.updates import UpdateWatch


class EarlySteps:
    """Describes the loop once a first step has built what it trains."""

    def __init__(self, loops: LoopRegistry, updates: UpdateWatch) -> None:
        self._loops = loops
        self._updates = updates

    def describe(self, consumer: Consumer, duration_ns: int) -> None:
        """A step of the loop's first two has ended."""
        loop, record = consumer.loop, consumer.loop.record
        if record.first_step_ns is None:
            record.first_step_ns = duration_ns
            loop.traced_in_first_step_ns = self._updates.tracing_ns
            self._loops.describe_keras(loop)
        elif record.fill_ns is None and consumer.hand_over == "call":
            # The first batch was asked for inside a call: what tracing and consumer did not take.
            model = loop.runtime.model_of(consumer.iterator())
            if model is not None and model.gaps_us:
                others = model.gaps_us[0] * 1000 + loop.traced_in_first_step_ns
                record.fill_ns = max(0, record.first_step_ns - others)
