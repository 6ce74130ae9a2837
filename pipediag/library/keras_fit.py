"""A Keras model's `fit` within an analysis, which leaves no trace on the model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from pipediag.errors import PipediagError

_CHANGED_BY_FIT = ("train_function", "history", "stop_training")
_ABSENT = object()


def is_keras_model(model: Any) -> bool:
    """Whether it is a model of Keras 3 or 2, by the class that it inherits from."""
    return any(
        kind.__name__ == "Model" and kind.__module__.partition(".")[0] in ("keras", "tf_keras")
        for kind in type(model).__mro__
    )


class KerasFit:
    """Calls `fit` once; what that sets on the model is put back, however it ends.

    Raises:
        PipediagError: the model is not compiled or not built, or trains by something other than
            TensorFlow.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        _refuse_other_backends(model)
        if getattr(model, "optimizer", None) is None:
            raise PipediagError(
                "the model is not compiled, so it can't train. Nothing was measured. Call "
                "`model.compile(...)` first."
            )
        if not model.built:
            # Keras takes a batch to build it before any step, so nobody sees its first weights.
            raise PipediagError(
                "the model is not built, so its first weights could not be put back. Nothing was "
                "measured. Call `model.build(...)`, or the model with one batch, first."
            )

    def run(self, dataset: Any, arguments: Mapping[str, Any]) -> None:
        """Train silently, unless `verbose` is among the arguments."""
        model = self._model
        own = {name: vars(model).get(name, _ABSENT) for name in _CHANGED_BY_FIT}
        if not getattr(model.optimizer, "built", True):
            # Else its first step makes its variables, and nobody knows what they were.
            model.optimizer.build(model.trainable_variables)
        # Traced anew: what a step does is read from its trace.
        model.train_function = None
        try:
            model.fit(dataset, **{"verbose": 0, **arguments})
        finally:
            for name, value in own.items():
                if value is _ABSENT:
                    vars(model).pop(name, None)
                else:
                    setattr(model, name, value)


def _refuse_other_backends(model: Any) -> None:
    keras = sys.modules.get("keras")
    of_keras_3 = any(kind.__module__.startswith("keras.src") for kind in type(model).__mro__)
    config = getattr(keras, "config", None)
    if not of_keras_3 or config is None or not hasattr(config, "backend"):
        return
    backend = config.backend()
    if backend != "tensorflow":
        raise PipediagError(
            f"the model trains on {backend}, whose variables can't be put back afterwards. Nothing "
            "was measured. Run `pipediag analyze` on your script instead."
        )
