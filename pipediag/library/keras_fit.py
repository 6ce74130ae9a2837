"""A Keras model's `fit` within an analysis, which leaves no trace on the model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from pipediag.capture.callsites import KERAS, package_of_module
from pipediag.capture.replay.refusal import first_line
from pipediag.errors import PipediagError

_CHANGED_BY_FIT = ("train_function", "history", "stop_training")
_ABSENT = object()
_BUILT = (
    "The model was not built: it was, by the shapes of the dataset's elements, and stays so with "
    "the weights that it was given by that."
)


def is_keras_model(model: Any) -> bool:
    """Whether it is a model of Keras 3 or 2, by the class that it inherits from."""
    return any(
        kind.__name__ == "Model" and package_of_module(kind.__module__) in KERAS
        for kind in type(model).__mro__
    )


class KerasFit:
    """Calls `fit` once; what that sets on the model is put back, however it ends.

    Raises:
        PipediagError: the model is not compiled, or trains by something other than TensorFlow.
    """

    def __init__(self, model: Any, note: Callable[[str], None]) -> None:
        self._model = model
        self._note = note
        _refuse_other_backends(model)
        if getattr(model, "optimizer", None) is None:
            raise PipediagError(
                "the model is not compiled, so it can't train. Nothing was measured. Call "
                "`model.compile(...)` first."
            )

    def run(self, dataset: Any, arguments: Mapping[str, Any]) -> None:
        """Train silently, unless `verbose` is among the arguments.

        Raises:
            PipediagError: the model is not built, and can't be by what is known of its inputs.
        """
        model = self._model
        if not model.built:
            # Else Keras takes a batch to build it before any step: nobody sees its first weights.
            _build(model, dataset.element_spec)
            self._note(_BUILT)
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


def _build(model: Any, elements: Any) -> None:
    """Call the model with inputs as `fit` would take them of these elements, but without values."""
    # A list is one input of many parts; a tuple is inputs, targets and weights.
    inputs = elements[0] if isinstance(elements, tuple) else elements
    # Neither is imported here, but by the program that made the model.
    keras, tensorflow = sys.modules[_package(model)], sys.modules["tensorflow"]
    try:
        model(
            tensorflow.nest.map_structure(
                lambda spec: keras.Input(batch_shape=tuple(spec.shape), dtype=spec.dtype.name),
                inputs,
            )
        )
    except Exception as error:
        raise PipediagError(
            "the model is not built, and could not be by the shapes of the dataset's elements "
            f"({first_line(error)}), so its first weights could not be put "
            "back. Nothing was measured. Call `model.build(...)`, or the model with one batch, "
            "first."
        ) from error


def _package(model: Any) -> str:
    return next(
        name
        for kind in type(model).__mro__
        if kind.__name__ == "Model" and (name := package_of_module(kind.__module__)) in KERAS
    )


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
