"""The number format in which layers of a built Keras model compute, changed and changed back."""

from __future__ import annotations

from typing import Any

_PLAIN = "float32"


class LayerPolicies:
    """Lets layers compute in 16 bits, with the variables they have.

    Left alone are layers whose policy the user chose, and those whose results are the model's:
    losses are computed from these, and Keras' guide keeps them in float32.
    """

    def __init__(self, model: Any) -> None:
        layers = list(model._flatten_layers(include_self=True))
        last = _last_layers(model)
        self._layers = [
            (layer, layer.dtype_policy)
            for layer in layers
            if layer.dtype_policy.name == _PLAIN and not any(layer is one for one in last)
        ]

    def use(self, policy: str | None) -> None:
        """A policy by its name, as `mixed_bfloat16`; None is the layers' own."""
        wanted = None if policy is None else self._named(policy)
        for layer, own in self._layers:
            layer.dtype_policy = own if wanted is None else wanted

    @staticmethod
    def _named(policy: str) -> Any:
        from keras.src import dtype_policies

        # Keras 3.0 keeps in a layer whatever it is given.
        return dtype_policies.get(policy)


def _last_layers(model: Any) -> list[Any]:
    outputs = getattr(model, "outputs", None) or []
    histories = [getattr(output, "_keras_history", None) for output in outputs]
    found = [history.operation for history in histories if history is not None]
    return found or list(model.layers)[-1:]
