"""The operations that a thread runs one by one, as a step does that no function runs.

Nothing of what they compute is kept but a few integers: a step may make tensors as large as its
tables.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any
from weakref import ref

MOST_OPERATIONS = 10_000
"""Own choice: what they are read from afterwards takes about a second for so many."""

_MOST_DIMENSIONS = 8
"""As many as the operations on tensors take at most: a number for each is no batch."""
_INTEGERS = frozenset({"int32", "int64"})


@dataclass(frozen=True, slots=True)
class EagerTensor:
    """What an operation was given or has made."""

    id: int
    """TensorFlow's own, which no other tensor of the process has."""
    dtype: Any
    shape: Any
    handle: ref[Any] | None = None
    """Itself, where it stands for a variable or a table of tokens, which live on without us."""
    integers: Any = None
    """Its value, where it is a few of them that an operation was given, as a slice's begin is."""


@dataclass(frozen=True, slots=True)
class EagerOperation:
    """One that has run."""

    type: str
    """Of a function that was called, its name."""
    attributes: tuple[Any, ...]
    """Names and values in turn."""
    inputs: tuple[EagerTensor, ...]
    outputs: tuple[EagerTensor, ...]
    in_gradients: bool
    """Whether the gradient of another one is computed by it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where among a step's operations a tensor is to be had."""

    operation: int
    made: bool
    """Whether it is an output of it, not an input."""
    index: int


class WholeStep:
    """Notes every operation of a step, to be read as a graph."""

    def __init__(self) -> None:
        self.operations: list[EagerOperation] = []
        self.too_many = False
        self._gradients = _code_of_gradients()

    def told(self, kind: Any, inputs: Sequence[Any], attributes: Any, outputs: Any) -> bool:
        """Of one that has run; returns whether the next one is of use."""
        if len(self.operations) >= MOST_OPERATIONS:
            self.too_many = True
            return False
        self.operations.append(
            EagerOperation(
                _text(kind),
                tuple(attributes or ()),
                tuple(_given(one) for one in inputs),
                tuple(EagerTensor(one._id, one.dtype, one.shape) for one in outputs or ()),
                _is_called_from(self._gradients),
            )
        )
        return True


class SomeTensors:
    """Keeps a few tensors of a step that runs what another one ran, up to the last of these."""

    def __init__(self, like: Sequence[EagerOperation], places: Mapping[Any, Place]) -> None:
        last = max((place.operation for place in places.values()), default=-1)
        self._types = [one.type for one in like[: last + 1]]
        self._wanted: dict[int, list[tuple[Any, Place]]] = {}
        for key, place in places.items():
            self._wanted.setdefault(place.operation, []).append((key, place))
        self._count = 0
        self.other = False
        """Whether it runs other operations."""
        self.found: dict[Any, Any] = {}
        """By the keys of their places."""

    @property
    def complete(self) -> bool:
        """Whether all were there."""
        return not self.other and self._count == len(self._types)

    def told(self, kind: Any, inputs: Sequence[Any], _attributes: Any, outputs: Any) -> bool:
        """Of one that has run; returns whether the next one is of use."""
        if self.complete:
            return False
        if _text(kind) != self._types[self._count]:
            self.other = True
            return False
        for key, place in self._wanted.get(self._count, ()):
            self.found[key] = (outputs if place.made else inputs)[place.index]
        self._count += 1
        return not self.complete


def _text(kind: Any) -> str:
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _given(tensor: Any) -> EagerTensor:
    kind = tensor.dtype
    if kind.name == "resource":
        return EagerTensor(tensor._id, kind, tensor.shape, handle=ref(tensor))
    shape = tensor.shape
    few = kind.name in _INTEGERS and shape.rank < 2 and shape.num_elements() <= _MOST_DIMENSIONS
    return EagerTensor(tensor._id, kind, shape, integers=tensor.numpy() if few else None)


def _code_of_gradients() -> frozenset[CodeType]:
    """What has the tape compute gradients, by whose functions ever, and that of an operation."""
    from tensorflow.python.eager import backprop, imperative_grad

    functions: tuple[Any, ...] = (imperative_grad.imperative_grad, backprop._gradient_function)
    return frozenset(one.__code__ for one in functions)


def _is_called_from(codes: frozenset[CodeType]) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
