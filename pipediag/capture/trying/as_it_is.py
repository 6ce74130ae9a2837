"""The model of a loop that the script runs itself: nobody else may compile it."""

from __future__ import annotations

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trainer import Settings


class AsItIs:
    """Trains as the script has it."""

    def check(self, settings: Settings) -> None:
        """Refuse any settings.

        Raises:
            NotReplayableError: there are some.
        """
        if settings:
            raise NotReplayableError(
                "Only a model in a Keras `fit` on TensorFlow can be compiled otherwise."
            )

    def use(self, settings: Settings) -> None:
        """Go on as before."""

    def on_elements(self, settings: Settings) -> None:
        """Nothing is left to the pipeline."""

    def batches_per_step(self, settings: Settings, own: int) -> int:  # noqa: ARG002
        """The loop's own."""
        return own
