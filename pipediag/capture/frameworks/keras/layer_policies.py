"""The number format in which layers of a built Keras model compute, changed and changed back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

_PLAIN = "float32"
_MIXED = "mixed_"
_PREPROCESSING = ".engine.base_preprocessing_layer"
_READ_AS_THEY_ARE = (
    ".layers.core.embedding",
    ".layers.normalization.batch_normalization",
    ".layers.normalization.layer_normalization",
)
"""Modules of layers that have Keras cast none of their variables: they cast results themselves."""


class LayerPolicies:
    """Lets layers compute in 16 bits, with the variables they have, or again in 32.

    In 32 are those under a mixed policy. In 16 are all but layers whose policy the user chose, and
    those whose results are the model's: losses are computed from these, and Keras' guide keeps them
    in float32.
    """

    def __init__(self, model: Any) -> None:
        layers = list(model._flatten_layers(include_self=True))
        last = _last_layers(model)
        owned = [(layer, layer.dtype_policy) for layer in layers]
        self._plain = [
            (layer, own)
            for layer, own in owned
            if own.name == _PLAIN
            and not any(layer is one for one in last)
            and not _made_for_its_format(layer)
        ]
        self._mixed = [(layer, own) for layer, own in owned if own.name.startswith(_MIXED)]

    def use(self, policy: str | None) -> None:
        """A policy by its name, as `mixed_bfloat16` or `float32`; None is the layers' own."""
        for layer, own in (*self._plain, *self._mixed):
            self._give(layer, own)
        if policy is not None:
            wanted = self._named(policy)
            for layer, _ in self._mixed if policy == _PLAIN else self._plain:
                self._give(layer, wanted)

    def _give(self, layer: Any, policy: Any) -> None:
        layer.dtype_policy = policy

    def _named(self, policy: str) -> Any:
        from keras.src import dtype_policies

        # Keras 3.0 keeps in a layer whatever it is given.
        return dtype_policies.get(policy)


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


def _last_layers(model: Any) -> list[Any]:
    outputs = getattr(model, "outputs", None) or []
    histories = [getattr(output, "_keras_history", None) for output in outputs]
    found = [_made_by(history) for history in histories if history is not None]
    return found or list(model.layers)[-1:]


def _made_by(history: Any) -> Any:
    return getattr(history, "operation", None) or history.layer  # of Keras 2


def _made_for_its_format(layer: Any) -> bool:
    """Whether it holds what it has learned from data in the format that it was made in, as the
    preprocessing layers of Keras 2 do."""
    modules = (base.__module__ for base in type(layer).__mro__)
    return any(module.endswith(_PREPROCESSING) for module in modules)
