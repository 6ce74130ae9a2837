"""The embeddings of a Keras model, and the tables of tokens that give their ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipediag.capture.callsites import KERAS, package_of_module
from pipediag.capture.frameworks.keras.made_at import made_at
from pipediag.capture.runtime import KnownTable, Vocabulary
from pipediag.session.recorded_loops import RecordedVariable

_EMBEDDING = "Embedding"


def known_tables(model: Any) -> list[KnownTable]:
    """Those of its Embedding layers and of classes made of that, in submodels too."""
    optimizer = getattr(model, "optimizer", None)
    slots = _slots_by_shape(optimizer)
    return [
        KnownTable(_variable(layer), _record(layer, slots, optimizer))
        for layer in embeddings_of(model)
    ]


def vocabularies(model: Any) -> list[Vocabulary]:
    """Those of its IntegerLookup, StringLookup and TextVectorization layers."""
    found = []
    for outer in _layers(model):
        layer = getattr(outer, "_lookup_layer", outer)
        handle = getattr(getattr(layer, "lookup_table", None), "resource_handle", None)
        if handle is not None:
            masked = layer.mask_token is not None
            first = 1 if masked else 0
            unknown = range(first, first + layer.num_oov_indices)
            found.append(Vocabulary(handle, tuple(unknown), zero_is_a_token=not masked))
    return found


def embeddings_of(model: Any) -> Iterator[Any]:
    """Its Embedding layers that are built, and those of classes made of that."""
    for layer in _layers(model):
        if any(_is_keras_own(base) for base in type(layer).__mro__) and layer.built:
            yield layer


def _is_keras_own(kind: type) -> bool:
    """A script's class of that name need not have what Keras' has."""
    return kind.__name__ == _EMBEDDING and package_of_module(kind.__module__) in KERAS


def _layers(model: Any) -> list[Any]:
    layers = model._flatten_layers() if hasattr(model, "_flatten_layers") else model.layers
    return list(layers)


def _record(layer: Any, slots: dict[tuple[int, ...], int], optimizer: Any) -> RecordedVariable:
    file, line = made_at(layer)
    return RecordedVariable(
        layer=layer.name,
        rows=layer.input_dim,
        dim=layer.output_dim,
        dtype=getattr(layer.embeddings.dtype, "name", str(layer.embeddings.dtype)),
        trainable=layer.trainable,
        slots=slots.get((layer.input_dim, layer.output_dim), 0) if layer.trainable else 0,
        file=file,
        line=line,
        mask_zero=bool(getattr(layer, "mask_zero", False)),
        regularizer=_class_name(getattr(layer, "embeddings_regularizer", None)),
        constraint=_class_name(getattr(layer, "embeddings_constraint", None)),
        path=getattr(getattr(layer, "_embeddings", None), "path", None),
        idle_slot_bytes=None if layer.trainable else idle_slot_bytes(optimizer, layer),
    )


def idle_slot_bytes(optimizer: Any, layer: Any) -> int | None:
    """What an optimizer of Keras 3 keeps for a table that it was built with; None for others.

    It keeps its variables in the order in which it was given those that it trains. One that scales
    the loss has them in the optimizer that it is around.
    """
    inner = getattr(optimizer, "__dict__", {}).get("inner_optimizer")
    if inner is not None:
        return idle_slot_bytes(inner, layer)
    trained = getattr(optimizer, "_trainable_variables", None)
    own = getattr(layer, "_embeddings", None)
    if trained is None or own is None:
        return None
    place = next((at for at, one in enumerate(trained) if one is own), None)
    if place is None:
        return 0
    lists = [one for one in vars(optimizer).values() if _is_kept(one, len(trained))]
    slots = [one[place] for one in lists if one is not trained]
    return sum(_bytes(one) for one in slots if one is not own and one.shape == own.shape)


def _is_kept(value: Any, length: int) -> bool:
    """Whether it is a list of variables, one for each that is trained."""
    return (
        isinstance(value, list)
        and len(value) == length
        and all(hasattr(one, "shape") and hasattr(one, "dtype") for one in value)
    )


def _bytes(variable: Any) -> int:
    value = variable.value
    return int(value.shape.num_elements()) * int(value.dtype.size)


def _class_name(value: Any) -> str | None:
    return None if value is None else type(value).__name__


def _variable(layer: Any) -> Any:
    """The framework's own, in which Keras 3 keeps the value of its one."""
    kept = getattr(layer, "_embeddings", layer.embeddings)
    return getattr(kept, "value", kept) if type(kept).__module__.startswith("keras") else kept


def _slots_by_shape(optimizer: Any) -> dict[tuple[int, ...], int]:
    counts: dict[tuple[int, ...], int] = {}
    variables = getattr(optimizer, "variables", [])
    for variable in variables() if callable(variables) else variables:
        shape = tuple(variable.shape)
        counts[shape] = counts.get(shape, 0) + 1
    return counts
