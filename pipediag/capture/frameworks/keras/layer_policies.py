"""The number format in which layers of a built Keras model compute, changed and changed back."""

from __future__ import annotations

from typing import Any

_PLAIN = "float32"
_MIXED = "mixed_"
_PREPROCESSING = ".engine.base_preprocessing_layer"


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
