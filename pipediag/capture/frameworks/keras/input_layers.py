"""Layers that prepare the inputs of a Keras model within it: which there are, and which of them a
pipeline could do in its place."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

from pipediag.capture.callsites import KERAS, package_of_module
from pipediag.session.recorded_loops import InputLayer

_KINDS = frozenset(
    "CategoryEncoding Discretization HashedCrossing Hashing IntegerLookup Normalization "
    "StringLookup TextVectorization".split()
)
"""None of them is trained, and each gives the same for the same input."""


_BITS = re.compile(r"\d+$")
"""At the end of the name of a number type; `bool` and `string` have none."""


@dataclass(frozen=True)
class Front:
    """What stands between a model's inputs and the layers that it trains."""

    layers: tuple[Any, ...]
    tensors: tuple[Any, ...]
    """What the rest of the model takes, symbolic: outputs of these layers, and inputs that go
    there as they are."""


def input_layers(model: Any) -> list[InputLayer]:
    """The layers of such a kind that a model holds; those that can be taken off it say so."""
    graph = graph_of(model)
    front = front_of(graph) if graph is not None else Front((), ())
    ends = [tensor._keras_history[0] for tensor in front.tensors]
    found = [layer for layer in _all_layers(model) if _prepares(layer)]
    parts = [part for layer in found for part in _parts_of(layer)]
    return [
        InputLayer(
            name=layer.name,
            kind=type(layer).__name__,
            behind_input=_is_among(layer, front.layers),
            handed_on=_is_among(layer, ends),
            row_bytes=_row_bytes(layer),
        )
        for layer in found
        if not _is_among(layer, parts)
    ]


def unsplit(model: Any) -> str | None:
    """Why a model can't be taken apart behind such layers, as a sentence; None where it can."""
    if package_of_module(type(model).__module__) not in KERAS:
        name = type(model).__name__
        return f"`{name}` is a class of its own, which calls its layers and trains in its own way."
    if graph_of(model) is None:
        return "This Keras keeps no graph of the model's layers that it could be rebuilt from."
    if getattr(model, "_distribute_strategy", None) is not None:
        return "The model was made for a distribution strategy."
    return None


def graph_of(model: Any) -> Any:
    """The functional model that a model is, or that a Sequential keeps; None for others."""
    inner = getattr(model, "_functional", None)
    graph = model if inner is None else inner
    known = ("_inputs_struct", "_nodes_by_depth", "inputs", "outputs")
    return graph if all(hasattr(graph, name) for name in known) else None


def front_of(graph: Any, names: Container[str] | None = None) -> Front:
    """The layers that see nothing but inputs and each other: all such, or those of these names."""
    ready = {id(tensor): tensor for tensor in graph.inputs}
    layers: dict[int, Any] = {}
    wanted = {id(tensor) for tensor in graph.outputs}
    for node in _in_order(graph):
        layer, read = node.operation, node.input_tensors
        chosen = _prepares(layer) and (names is None or layer.name in names)
        if chosen and all(id(tensor) in ready for tensor in read):
            layers[id(layer)] = layer
            ready.update((id(tensor), tensor) for tensor in node.output_tensors)
        else:
            wanted |= {id(tensor) for tensor in read}
    tensors = tuple(tensor for key, tensor in ready.items() if key in wanted)
    return Front(tuple(layers.values()), tensors)


def _in_order(graph: Any) -> Iterator[Any]:
    """Nodes behind the inputs, each after what it reads from."""
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        yield from (node for node in graph._nodes_by_depth[depth] if not node.is_input)


def _prepares(layer: Any) -> bool:
    own = type(layer)
    return own.__name__ in _KINDS and package_of_module(own.__module__) in KERAS


def _row_bytes(layer: Any) -> int | None:
    """Bytes of what the layer gives for one example, where its place in the model fixes that."""
    given = getattr(layer, "output", None) if len(_nodes(layer)) == 1 else None
    shape, kind = getattr(given, "shape", None), getattr(given, "dtype", "")
    bits = _BITS.search(getattr(kind, "name", str(kind)))  # Keras 2 has TensorFlow's own types
    if not shape or None in shape[1:] or bits is None:
        return None
    return int(prod(shape[1:])) * int(bits[0]) // 8


def _nodes(layer: Any) -> list[Any]:
    return getattr(layer, "_inbound_nodes", [])


def _parts_of(layer: Any) -> list[Any]:
    """Layers that it is made of, as a TextVectorization is of a StringLookup."""
    return [part for part in _all_layers(layer) if part is not layer]


def _is_among(layer: Any, layers: Iterable[Any]) -> bool:
    return any(layer is one for one in layers)


def _all_layers(model: Any) -> list[Any]:
    flatten = getattr(model, "_flatten_layers", None)
    try:
        return list(flatten() if flatten is not None else model.layers)
    except Exception:  # a class of the script's may answer with anything
        return []
