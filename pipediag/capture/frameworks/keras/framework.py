"""Keras 3 on any backend, and Keras 2 under each name that it has had."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.capture.frameworks.framework import Hook
from pipediag.capture.frameworks.keras.environment import describe
from pipediag.capture.frameworks.keras.hooks import KERAS_2, KerasHooks
from pipediag.capture.frameworks.keras.predictions import PredictTrials
from pipediag.capture.frameworks.keras.timed_calls import TimedCalls
from pipediag.capture.frameworks.keras.trainer import KerasTrainer
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.recording import RecordedEnvironment


class Keras:
    """It trains for the script: by TensorFlow, or on batches of tf.data's by something else."""

    # What it does without TensorFlow is nothing that is watched.
    arrives_with = "tensorflow"
    trainer = KerasTrainer()
    looks_at_training = {  # noqa: RUF012
        "keras.src.saving.saving_lib": ("save_model", "save_weights_only"),
        "keras.src.legacy.saving.legacy_h5_format": (
            "save_model_to_hdf5",
            "save_weights_to_hdf5_group",
        ),
        "keras.src.layers.layer": ("Layer.get_weights",),
        **{
            f"{keras_2}.{module}": paths
            for keras_2 in KERAS_2
            for module, paths in (
                ("saving.saving_api", ("save_model", "save_weights")),
                ("engine.base_layer", ("Layer.get_weights",)),
                ("engine.training", ("Model.get_weights",)),
            )
        },
    }

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        """Where epochs can be held, end, where its calls are, and where an optimizer steps."""
        conductor = watchers.conductor
        trials = PredictTrials(watchers.recorder.recording.predictions, watchers.timeline)
        timed = TimedCalls(
            watchers.timeline,
            watchers.guard,
            conductor.evaluated,
            conductor.fit_over,
            trials.called if watchers.held.makes_trials else None,
        )
        return KerasHooks(
            watchers.conductor, watchers.updates, watchers.held, timed, watchers.guard
        ).by_module()

    def describe(self, environment: RecordedEnvironment) -> None:
        """Version, backend and precision."""
        describe(environment)
