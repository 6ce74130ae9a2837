"""A Keras model with an optimizer in place of its own, and back again."""

from __future__ import annotations

from typing import Any

KNOWN = ("sgd",)
_RATE = 0.01
"""Of steps whose results are put back: it only has to keep numbers finite."""


class OptimizerInPlace:
    """Lets a model train with plain SGD, which keeps no averages and writes the rows it was given.

    Variables that it needs are its own.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._own: Any = getattr(model, "optimizer", None)
        self._plain: Any = None

    def use(self, name: str | None) -> None:
        """An optimizer by its name; None is the model's own."""
        wanted = self._own if name is None else self._made()
        if getattr(self._model, "optimizer", None) is not wanted:
            self._model.optimizer = wanted

    def _made(self) -> Any:
        if self._plain is None:
            from keras.src import optimizers

            # A name, as Keras numbers those that have none.
            self._plain = optimizers.SGD(self._rate(), name="pipediag_sgd")
            self._plain.build(self._model.trainable_variables)
        return self._plain

    def _rate(self) -> float:
        try:
            return float(self._own.learning_rate)
        except Exception:  # a schedule of the script's own may do anything
            return _RATE
