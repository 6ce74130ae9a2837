"""Layers of a Keras model that prepare its inputs, and the model without them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

from pipediag.capture.callsites import KERAS, is_keras_class, package_of_module
from pipediag.capture.replay.refusal import NotReplayableError
from pipediag.session.recorded_loops import InputLayer

_KINDS = frozenset(
    "CategoryEncoding Discretization HashedCrossing Hashing IntegerLookup Normalization "
    "StringLookup TextVectorization".split()
)
"""None of them is trained, and each gives the same for the same input."""


_BITS = re.compile(r"\d+$")
"""At the end of the name of a number type; `bool` and `string` have none."""
_Layers = tuple[str, ...]


class Front(NamedTuple):
    """Layers between a model's inputs and the layers that it trains."""

    layers: tuple[Any, ...]
    tensors: tuple[Any, ...]
    """What the rest of the model takes, symbolic: outputs of these layers, and inputs that go
    there as they are."""


def input_layers(model: Any) -> list[InputLayer]:
    """Return the layers of such a kind that a model holds, and which can be taken off it."""
    graph = graph_of(model)
    front = front_of(graph) if graph is not None else Front((), ())
    ends = [tensor._keras_history[0] for tensor in front.tensors]
    found = [layer for layer in all_layers(model) if is_keras_class(type(layer), _KINDS)]
    # A TextVectorization is made of a StringLookup.
    parts = [part for layer in found for part in all_layers(layer) if part is not layer]
    return [
        InputLayer(
            name=layer.name,
            kind=type(layer).__name__,
            behind_input=is_among(layer, front.layers),
            handed_on=is_among(layer, ends),
            row_bytes=_row_bytes(layer),
        )
        for layer in found
        if not is_among(layer, parts)
    ]


def unsplit(model: Any) -> str | None:
    """Return why a model can't be taken apart behind such layers, as a sentence."""
    if package_of_module(type(model).__module__) not in KERAS:
        name = type(model).__name__
        return f"`{name}` is a class of its own, which calls its layers and trains in its own way."
    if graph_of(model) is None:
        return "This Keras keeps no graph of the model's layers that it could be rebuilt from."
    if getattr(model, "_distribute_strategy", None) is not None:
        return "The model was made for a distribution strategy."
    return None


def graph_of(model: Any) -> Any:
    """Return the functional model that a model is, or that a Sequential keeps."""
    inner = getattr(model, "_functional", None)
    graph = model if inner is None else inner
    known = ("_inputs_struct", "_nodes_by_depth", "inputs", "outputs")
    return graph if all(hasattr(graph, name) for name in known) else None


def front_of(graph: Any, names: Container[str] | None = None) -> Front:
    """Return the layers that see nothing but inputs and each other, all or those of these names."""
    ready = {id(tensor): tensor for tensor in graph.inputs}
    layers: dict[int, Any] = {}
    wanted = {id(tensor) for tensor in graph.outputs}
    by_depth = sorted(graph._nodes_by_depth.items(), reverse=True)
    for node in (one for _, nodes in by_depth for one in nodes if not one.is_input):
        layer, read = node.operation, node.input_tensors
        chosen = is_keras_class(type(layer), _KINDS) and (names is None or layer.name in names)
        if chosen and all(id(tensor) in ready for tensor in read):
            layers[id(layer)] = layer
            ready.update((id(tensor), tensor) for tensor in node.output_tensors)
        else:
            wanted |= {id(tensor) for tensor in read}
    tensors = tuple(tensor for key, tensor in ready.items() if key in wanted)
    return Front(tuple(layers.values()), tensors)


def _row_bytes(layer: Any) -> int | None:
    """Return the bytes that the layer gives for one example, where its place in the model fixes
    that."""
    placed_once = len(getattr(layer, "_inbound_nodes", [])) == 1
    given = getattr(layer, "output", None) if placed_once else None
    shape, kind = getattr(given, "shape", None), getattr(given, "dtype", "")
    bits = _BITS.search(getattr(kind, "name", str(kind)))  # Keras 2 has TensorFlow's own types
    if not shape or None in shape[1:] or bits is None:
        return None
    return int(prod(shape[1:])) * int(bits[0]) // 8


def is_among(layer: Any, layers: Iterable[Any]) -> bool:
    """Return True if it is one of these, whatever `==` says."""
    return any(layer is one for one in layers)


def all_layers(model: Any) -> list[Any]:
    """Return the layers of a model or a layer, in submodels too."""
    flatten = getattr(model, "_flatten_layers", None)
    try:
        return list(flatten() if flatten is not None else model.layers)
    except Exception:  # a class of the script's may answer with anything
        return []


_SHARED = ("loss", "_compile_loss", "_compile_metrics", "_loss_tracker")
"""Attributes of a compiled model that two ways to compile it share."""


class WithoutInputLayers:
    """Models of the same layers, weights, optimizer and metrics that begin further down.

    Nothing of the user's model is changed, nor what its layers know of their places.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._parts: dict[_Layers, tuple[Any, Any]] = {}

    def check(self, layers: _Layers) -> None:
        """Raise NotReplayableError if these layers can't be taken off."""
        if layers:
            self._split(layers)

    def on_elements(self, layers: _Layers) -> Callable[..., Any]:
        """Return what these layers do, as a function for a dataset's `map`."""
        front, _ = self._split(layers)

        def prepared(inputs: Any, *others: Any) -> Any:
            given = front(inputs)
            # A dataset makes one tensor of a list.
            given = tuple(given) if isinstance(given, list) else given
            return (given, *others) if others else given

        return prepared

    def train_function(self, layers: _Layers) -> Callable[[Any], Any]:
        """Return a step of the rest, compiled as the user's model is at this moment."""
        from keras.src.utils.tracking import DotNotTrackScope

        model, (_, rest) = self._model, self._split(layers)
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
        rest.make_train_function(force=True)
        function: Callable[[Any], Any] = rest.train_function
        return function

    def _split(self, layers: _Layers) -> tuple[Any, Any]:
        """Return the model of these layers, and that of the rest."""
        if layers in self._parts:
            return self._parts[layers]
        model = self._model
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
        tensors = list(front.tensors)
        if not tensors or any(is_among(tensor, graph.outputs) for tensor in tensors):
            raise NotReplayableError("Behind these layers the model has nothing that is trained.")
        from keras.src.models.functional import Functional

        with _places_kept(graph), warnings.catch_warnings():
            # About names of inputs given as a dict, which are the user's own.
            warnings.simplefilter("ignore")
            ahead = Functional(graph._inputs_struct, tensors, name=f"{model.name}_inputs")
            given = tensors[0] if len(tensors) == 1 else tensors
            rest = Functional(given, graph._outputs_struct, name=model.name)
        self._parts[layers] = ahead, rest
        return ahead, rest


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
