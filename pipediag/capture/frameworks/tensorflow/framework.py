"""TensorFlow 2, and the sessions of TensorFlow 1 in it."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.capture.frameworks.framework import Hook
from pipediag.capture.frameworks.tensorflow.environment import describe
from pipediag.capture.frameworks.tensorflow.hooks import TensorFlowHooks
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.recording import RecordedEnvironment


class TensorFlow:
    """It makes pipelines, and runs steps."""

    arrives_with = "tensorflow"
    trainer = None
    looks_at_training = {  # noqa: RUF012
        "tensorflow.python.checkpoint.checkpoint": ("TrackableSaver.save",),
    }

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        """Where pipelines, iterators, functions and variables are."""
        return TensorFlowHooks(watchers).by_module()

    def describe(self, environment: RecordedEnvironment) -> None:
        """Version, build, settings and devices."""
        describe(environment)
