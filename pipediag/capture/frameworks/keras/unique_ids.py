"""A Keras model's embeddings looked up by each different id of a batch once, and undone again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.capture.frameworks.keras.tables import embeddings_of
from pipediag.capture.replay import NotReplayableError

_CALL = "call"
_DENSE = frozenset({"EagerTensor", "SymbolicTensor", "Tensor"})
"""Classes of one tensor, in a graph or outside of one: a ragged one's ids are in several."""


class UniqueIds:
    """Lets a model look rows up by different ids alone, and hand each to all its places."""

    def __init__(self, model: Any) -> None:
        # One whose `call` the script has replaced in the object would be given back another.
        self._layers = [one for one in embeddings_of(model) if _CALL not in vars(one)]
        self._are_unique = False

    def check(self) -> None:
        """See whether there is an embedding to look up so.

        Raises:
            NotReplayableError: there is none.
        """
        if not self._layers:
            raise NotReplayableError("The model has no embedding that can be looked up otherwise.")

    def use(self, wanted: bool) -> None:
        """Look up by different ids, or as the model does; Keras calls it while it traces a step."""
        if wanted == self._are_unique:
            return
        for layer in self._layers:
            # Keras looks for weights in what is set on a layer by its own way.
            if wanted:
                object.__setattr__(layer, _CALL, _by_different_ids(layer.call))
            else:
                object.__delattr__(layer, _CALL)
        self._are_unique = wanted


def _by_different_ids(own: Callable[..., Any]) -> Callable[..., Any]:
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        from tensorflow.python.ops import array_ops

        if type(inputs).__name__ not in _DENSE:
            return own(inputs, *args, **kwargs)
        different, places = array_ops.unique(array_ops.reshape(inputs, [-1]))
        vectors = own(different, *args, **kwargs)
        handed_out = array_ops.gather(vectors, array_ops.reshape(places, array_ops.shape(inputs)))
        handed_out.set_shape(inputs.shape.concatenate(vectors.shape[1:]))
        return handed_out

    return call
