"""The number format in which layers of a built Keras 2 model compute, changed and changed back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pipediag.capture.frameworks.keras.layer_policies import LayerPolicies

_READ_AS_THEY_ARE = (
    ".layers.core.embedding",
    ".layers.normalization.batch_normalization",
    ".layers.normalization.layer_normalization",
)
"""Modules of layers that have Keras cast none of their variables: they cast results themselves."""


class Keras2LayerPolicies(LayerPolicies):
    """Keras 2 settles as it builds a layer whether its variables are cast where they are read. So
    those that were built in 32 bits get what casts them, in the attributes that the layer reads.

    The model's lists of variables, by which the optimizer has them, stay as they are.
    """

    def __init__(self, model: Any, package: str) -> None:
        """`package` is the Keras of the model: `tf_keras`, or `keras` beside TensorFlow 2.15."""
        super().__init__(model)
        self._parts = f"{package}.src.mixed_precision"
        self._read = {id(layer): list(self._cast(layer)) for layer, _ in self._plain}

    def _give(self, layer: Any, policy: Any) -> None:
        layer._set_dtype_policy(policy)
        casts = policy.compute_dtype != policy.variable_dtype
        for name, variable, casting in self._read.get(id(layer), ()):
            # Not by `setattr`, by which Keras would take it for another variable of the layer.
            vars(layer)[name] = casting if casts else variable

    def _named(self, policy: str) -> Any:
        return sys.modules[f"{self._parts}.policy"].Policy(policy)

    def _cast(self, layer: Any) -> Iterator[tuple[str, Any, Any]]:
        """Attributes of a layer that hold a variable of its own, with what casts that."""
        modules = [base.__module__ for base in type(layer).__mro__]
        if any(module.endswith(_READ_AS_THEY_ARE) for module in modules):
            return
        making = sys.modules[f"{self._parts}.autocast_variable"].create_autocast_variable
        own = [*layer._trainable_weights, *layer._non_trainable_weights]
        for name, value in vars(layer).items():
            if any(value is one for one in own) and value.dtype.is_floating:
                yield name, value, making(value)
