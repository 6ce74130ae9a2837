"""Readings of tf.data's model of a running iterator, as the recording keeps them."""

from __future__ import annotations

from pipediag.capture.frameworks.tensorflow.model_proto import (
    NO_MODELS,
    IteratorModel,
    model_of,
    snapshot,
    tensorflow_has_models,
)
from pipediag.capture.loops.loop import Consumer
from pipediag.capture.recorder import Recorder


class Snapshots:
    """Each takes a few milliseconds, in which the script stands still."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def take(self, consumer: Consumer) -> IteratorModel | None:
        """Read the model and keep it; None where the iterator has none."""
        model = model_of(consumer.iterator())
        if model is not None:
            record = consumer.loop.record
            self._recorder.recording.snapshots.append(
                snapshot(model, record.id, consumer.ordinal, record.steps, consumer.batches)
            )
        elif not tensorflow_has_models():
            self._recorder.note(NO_MODELS)
        return model
