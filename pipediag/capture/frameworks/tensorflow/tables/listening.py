"""Hears of the operations that one thread runs, by TensorFlow's own op callbacks.

These are the program's as much as ours: what others have put among them stays in effect, and ours
is removed as soon as nothing more is to be heard. Nothing of what operations compute is kept but a
few integers: a step may make tensors as large as its tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any
from weakref import ref

from pipediag.capture.guard import attempt

Hear = Callable[[Any, Sequence[Any], Any, Any], bool]
"""Takes an operation's type, inputs, attributes and outputs; returns True to hear the next one."""

MOST_SECONDS = 10
"""Own choice: a step that takes so long may be none, as its loop was left in the middle of it."""
MOST_OPERATIONS = 10_000
"""Own choice: reading so many afterwards takes about a second."""

_TOO_LONG = f"The step had not ended after {MOST_SECONDS} s, so that it was listened to no longer."
_SILENCED = "Something else removed TensorFlow's op callbacks in the middle of the step."
_MOST_DIMENSIONS = 8
"""Operations on tensors take at most so many: a number for each is no batch."""
_INTEGERS = frozenset({"int32", "int64"})


class Listening:
    """Listens once to the operations of the thread that begins it."""

    def __init__(self, hear: Hear) -> None:
        self._hear: Hear | None = hear
        self.lack: str | None = None
        """The reason why it stopped by itself, as a sentence."""
        self._until_ns = 0
        self._others_hear = False
        """True if the script has callbacks on another thread."""
        # TensorFlow's C++ calls it without a reference of its own, and it may take itself out.
        self._callback = self._operation

    def begin(self) -> None:
        """Hear each operation from here on, until `end` or until one was enough."""
        from tensorflow.python.eager import context, execute
        from tensorflow.python.framework import op_callbacks

        patched = execute.execute is execute.execute_with_callbacks
        self._others_hear = patched and not context.context().op_callbacks
        self._until_ns = time.monotonic_ns() + MOST_SECONDS * 1_000_000_000
        op_callbacks.add_op_callback(self._callback)

    def end(self) -> None:
        """Stop; on another thread, the callback is removed with that thread's next operation."""
        from tensorflow.python.eager import execute

        if self._hear is not None and execute.execute is execute.quick_execute:
            self.lack = _SILENCED
        self._hear = None
        self._remove()

    def _operation(
        self,
        kind: Any,
        inputs: Sequence[Any],
        attributes: Any,
        outputs: Any,
        op_name: Any = None,  # noqa: ARG002
        graph: Any = None,
    ) -> Any:
        # Operations of a graph that is being built have not run.
        if self._hear is not None and graph is None:
            what = "listening to the operations of a step"
            attempt(self._stop, what, self._pass_on, kind, inputs, attributes, outputs)
        if self._hear is None:
            attempt(self._stop, "removing an op callback", self._remove_if_last)
        # The tensors of a graph are what the callback before this one has made of them.
        return None if graph is None else outputs

    def _pass_on(self, kind: Any, inputs: Sequence[Any], attributes: Any, outputs: Any) -> None:
        if time.monotonic_ns() > self._until_ns:
            self._stop(_TOO_LONG)
        elif self._hear is not None and not self._hear(kind, inputs, attributes, outputs):
            self._hear = None

    def _stop(self, reason: str) -> None:
        self._hear, self.lack = None, reason

    def _remove_if_last(self) -> None:
        """Leave it in front of another one, which TensorFlow would skip."""
        from tensorflow.python.eager import context

        if context.context().op_callbacks[-1:] == [self._callback]:
            self._remove()

    def _remove(self) -> None:
        from tensorflow.python.eager import context, execute
        from tensorflow.python.framework import op_callbacks

        callbacks = context.context().op_callbacks
        if self._callback not in callbacks:
            return
        op_callbacks.remove_op_callback(self._callback)
        if not callbacks:  # TensorFlow does not look while a graph is being built
            still = self._others_hear
            execute.execute = execute.execute_with_callbacks if still else execute.quick_execute


@dataclass(frozen=True, slots=True)
class EagerTensor:
    """An input or an output of an operation."""

    id: int
    """TensorFlow's own, which no other tensor of the process has."""
    dtype: Any
    shape: Any
    handle: ref[Any] | None = None
    """The tensor, where it stands for a variable or a table of tokens, which outlive the step."""
    integers: Any = None
    """The value of a few integers that an operation was given, as a slice's begin."""


@dataclass(frozen=True, slots=True)
class EagerOperation:
    """An operation that has run."""

    type: str
    """The function's name where it is a call."""
    attributes: tuple[Any, ...]
    """Names and values in turn."""
    inputs: tuple[EagerTensor, ...]
    outputs: tuple[EagerTensor, ...]
    in_gradients: bool
    """True if it computes the gradient of another one."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where among a step's operations a tensor can be taken."""

    operation: int
    made: bool
    """True for an output, False for an input."""
    index: int


class WholeStep:
    """Notes every operation of a step, to be read as a graph."""

    def __init__(self) -> None:
        self.operations: list[EagerOperation] = []
        self.too_many = False
        self._gradients = _code_of_gradients()

    def hear(self, kind: Any, inputs: Sequence[Any], attributes: Any, outputs: Any) -> bool:
        """Note an operation; return True if the next one is of use."""
        if len(self.operations) >= MOST_OPERATIONS:
            self.too_many = True
            return False
        self.operations.append(
            EagerOperation(
                text(kind),
                tuple(attributes or ()),
                tuple(_given(one) for one in inputs),
                tuple(EagerTensor(one._id, one.dtype, one.shape) for one in outputs or ()),
                _is_called_from(self._gradients),
            )
        )
        return True


class SomeTensors:
    """Keeps a few tensors of a step that runs the same operations as another one, up to the last
    of these."""

    def __init__(self, like: Sequence[EagerOperation], places: Mapping[Any, Place]) -> None:
        last = max((place.operation for place in places.values()), default=-1)
        self._types = [one.type for one in like[: last + 1]]
        self._wanted: dict[int, list[tuple[Any, Place]]] = {}
        for key, place in places.items():
            self._wanted.setdefault(place.operation, []).append((key, place))
        self._count = 0
        self.other = False
        """True if it runs other operations."""
        self.found: dict[Any, Any] = {}
        """The tensors by the keys of their places."""

    @property
    def complete(self) -> bool:
        """Return True if all were there."""
        return not self.other and self._count == len(self._types)

    def hear(self, kind: Any, inputs: Sequence[Any], _attributes: Any, outputs: Any) -> bool:
        """Keep what is wanted of an operation; return True if the next one is of use."""
        if self.complete:
            return False
        if text(kind) != self._types[self._count]:
            self.other = True
            return False
        for key, place in self._wanted.get(self._count, ()):
            self.found[key] = (outputs if place.made else inputs)[place.index]
        self._count += 1
        return not self.complete


def text(name: Any) -> str:
    """Return a name that TensorFlow has as bytes or as text."""
    return name.decode() if isinstance(name, bytes) else str(name)


def _given(tensor: Any) -> EagerTensor:
    kind = tensor.dtype
    if kind.name == "resource":
        return EagerTensor(tensor._id, kind, tensor.shape, handle=ref(tensor))
    shape = tensor.shape
    few = kind.name in _INTEGERS and shape.rank < 2 and shape.num_elements() <= _MOST_DIMENSIONS
    return EagerTensor(tensor._id, kind, shape, integers=tensor.numpy() if few else None)


def _code_of_gradients() -> frozenset[CodeType]:
    """Return the code that has the tape compute all gradients, and that of an operation."""
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
