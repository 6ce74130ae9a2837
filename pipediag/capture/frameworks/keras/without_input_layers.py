"""The user's model in two parts: layers that prepare its inputs, and the rest, which is trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pipediag.capture.frameworks.keras.input_layers import front_of, graph_of, unsplit
from pipediag.capture.replay import NotReplayableError

Layers = tuple[str, ...]

_SHARED = ("loss", "_compile_loss", "_compile_metrics", "_loss_tracker")
"""Attributes of a compiled model that two ways to compile it share."""


class WithoutInputLayers:
    """Models of the same layers, weights, optimizer and metrics that begin further down.

    Nothing of the user's model is changed by that, what its layers know of their places included.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._parts: dict[Layers, tuple[Any, Any]] = {}

    def check(self, layers: Layers) -> None:
        """See whether these layers can be taken off.

        Raises:
            NotReplayableError: they can't.
        """
        if layers:
            self._split(layers)

    def on_elements(self, layers: Layers) -> Callable[..., Any]:
        """What these layers do, as a function for a dataset's `map`."""
        front, _ = self._split(layers)

        def prepared(inputs: Any, *others: Any) -> Any:
            given = front(inputs)
            # A dataset makes one tensor of a list.
            given = tuple(given) if isinstance(given, list) else given
            return (given, *others) if others else given

        return prepared

    def train_function(self, layers: Layers) -> Callable[[Any], Any]:
        """A step of the rest, compiled as the user's model is at this moment."""
        _, rest = self._split(layers)
        _compile_alike(rest, self._model)
        rest.make_train_function(force=True)
        function: Callable[[Any], Any] = rest.train_function
        return function

    def _split(self, layers: Layers) -> tuple[Any, Any]:
        if layers not in self._parts:
            self._parts[layers] = _split(self._model, layers)
        return self._parts[layers]


def _split(model: Any, layers: Layers) -> tuple[Any, Any]:
    refusal = unsplit(model)
    if refusal is not None:
        raise NotReplayableError(refusal)
    graph = graph_of(model)
    front = front_of(graph, layers)
    missing = sorted(set(layers) - {layer.name for layer in front.layers})
    if missing:
        raise NotReplayableError(
            f"The model has no layer {', '.join(missing)} directly behind its inputs."
        )
    if not front.tensors or any(_is_among(tensor, graph.outputs) for tensor in front.tensors):
        raise NotReplayableError("Behind these layers the model has nothing that is trained.")
    from keras.src.models.functional import Functional

    with _places_kept(graph), warnings.catch_warnings():
        # About names of inputs given as a dict, which are the user's own.
        warnings.simplefilter("ignore")
        ahead = Functional(graph._inputs_struct, list(front.tensors), name=f"{model.name}_inputs")
        rest = Functional(_one_or_all(front.tensors), graph._outputs_struct, name=model.name)
    return ahead, rest


def _one_or_all(tensors: Sequence[Any]) -> Any:
    return tensors[0] if len(tensors) == 1 else list(tensors)


def _is_among(tensor: Any, tensors: Sequence[Any]) -> bool:
    return any(tensor is one for one in tensors)


@contextmanager
def _places_kept(graph: Any) -> Iterator[None]:
    """Keep each layer's list of places: one that is used again lists its new place, and the user's
    code may look at that list."""
    lists = [
        listed
        for operation in graph._operations
        for listed in (operation._inbound_nodes, operation._outbound_nodes)
    ]
    lengths = [len(listed) for listed in lists]
    try:
        yield
    finally:
        for listed, length in zip(lists, lengths, strict=True):
            del listed[length:]


def _compile_alike(rest: Any, model: Any) -> None:
    """Compile `rest` as `model` is at this moment."""
    from keras.src.utils.tracking import DotNotTrackScope

    rest.compile(
        optimizer=model.optimizer,
        run_eagerly=model.run_eagerly,
        steps_per_execution=model.steps_per_execution,
        jit_compile=model.jit_compile,
        auto_scale_loss=False,
    )
    with DotNotTrackScope():
        for name in _SHARED:
            setattr(rest, name, getattr(model, name))
