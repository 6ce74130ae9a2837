"""The operations that a thread runs one by one, as a step does that no function runs.

TensorFlow tells of each once it has run. Nothing of what they compute is kept but a few integers: a
step may make tensors as large as its tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from pipediag.capture.guard import attempt

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
    handle: Any = None
    """Itself, where it stands for a variable or a table of tokens."""
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


class Listening:
    """To the operations of one thread, that which begins it."""

    def __init__(self) -> None:
        self._told: Callable[..., None] | None = None
        self.lack: str | None = None
        """Why it stopped by itself, as a sentence."""

    def begin(self, told: Callable[..., None]) -> None:
        """Have `told` called after each from here on."""
        from tensorflow.python.framework import op_callbacks

        self._told, self.lack = told, None
        op_callbacks.add_op_callback(self._operation)

    def end(self) -> None:
        """Hear of none any more."""
        from tensorflow.python.eager import context
        from tensorflow.python.framework import op_callbacks

        self._told = None
        if self._operation in context.context().op_callbacks:
            op_callbacks.remove_op_callback(self._operation)

    def _operation(
        self,
        kind: Any,
        inputs: Sequence[Any],
        attributes: Any,
        outputs: Any,
        op_name: Any = None,  # noqa: ARG002
        graph: Any = None,
    ) -> None:
        # Those of a graph that is being built are none that have run.
        if self._told is not None and graph is None:
            what = "listening to the operations of a step"
            attempt(self._failed, what, self._told, kind, inputs, attributes, outputs)

    def _failed(self, reason: str) -> None:
        self._told, self.lack = None, reason


class WholeStep:
    """Notes every operation of a step, to be read as a graph."""

    def __init__(self) -> None:
        self.operations: list[EagerOperation] = []
        self.too_many = False
        self._gradients = _code_of_gradients()

    def told(self, kind: Any, inputs: Sequence[Any], attributes: Any, outputs: Any) -> None:
        """Of one that has run."""
        if len(self.operations) >= MOST_OPERATIONS:
            self.too_many = True
            return
        self.operations.append(
            EagerOperation(
                _text(kind),
                tuple(attributes or ()),
                tuple(_given(one) for one in inputs),
                tuple(EagerTensor(one._id, one.dtype, one.shape) for one in outputs or ()),
                _is_called_from(self._gradients),
            )
        )


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

    def told(self, kind: Any, inputs: Sequence[Any], _attributes: Any, outputs: Any) -> None:
        """Of one that has run."""
        if self.other or self._count == len(self._types):
            return
        if _text(kind) != self._types[self._count]:
            self.other = True
            return
        for key, place in self._wanted.get(self._count, ()):
            self.found[key] = (outputs if place.made else inputs)[place.index]
        self._count += 1


def _text(kind: Any) -> str:
    return kind.decode() if isinstance(kind, bytes) else str(kind)


def _given(tensor: Any) -> EagerTensor:
    kind = tensor.dtype
    if kind.name == "resource":
        return EagerTensor(tensor._id, kind, tensor.shape, handle=tensor)
    shape = tensor.shape
    few = kind.name in _INTEGERS and shape.rank < 2 and shape.num_elements() <= _MOST_DIMENSIONS
    return EagerTensor(tensor._id, kind, shape, integers=tensor.numpy() if few else None)


def _code_of_gradients() -> CodeType:
    """What calls the gradient of each operation."""
    from tensorflow.python.eager import backprop

    code: CodeType = backprop._gradient_function.__code__
    return code


def _is_called_from(code: CodeType) -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
