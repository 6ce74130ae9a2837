"""Readings of what a running pipeline tells of itself, as the recording keeps them."""

from __future__ import annotations

import time

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import IteratorModel
from pipediag.session.recorded_model import ModelSnapshot


class Snapshots:
    """Each takes a few milliseconds, in which the script stands still."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def take(self, loop: Loop, consumer: Consumer) -> IteratorModel | None:
        """Read the model and keep it as the loop's; None where the iterator has none."""
        runtime = loop.runtime
        model = runtime.model_of(consumer.iterator())
        if model is not None:
            self._recorder.recording.snapshots.append(_snapshot(model, loop, consumer))
        elif runtime.no_models is not None:
            self._recorder.note(runtime.no_models)
        return model


def _snapshot(model: IteratorModel, loop: Loop, consumer: Consumer) -> ModelSnapshot:
    """The difference of two gives rates."""
    record = loop.record
    return ModelSnapshot(
        loop_id=record.id,
        iterator=consumer.ordinal,
        at_ns=time.monotonic_ns(),
        steps=record.steps,
        iterator_steps=consumer.batches,
        nodes=model.nodes,
        output_id=model.output_id,
    )
