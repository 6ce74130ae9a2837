"""The operations of a step that no function runs, put together as the graph that they are."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.eager_operations import (
    EagerOperation,
    EagerTensor,
    Place,
)

_CALL = "StatefulPartitionedCall"
_IN_GRADIENTS = "gradient_tape/"
"""The scope that TensorFlow itself gives them in a graph."""


class EagerGraph:
    """Of operations in the order in which they ran; nothing is run, and no number is drawn.

    What none of them has made is an input, as a batch is; a few integers are constants. Iterators
    are inputs too: a graph lives until Python collects its garbage, and a process that was forked
    by then hangs or aborts where it frees one, as the threads of its pipeline are not there.
    """

    def __init__(self, operations: Sequence[EagerOperation]) -> None:
        from tensorflow.python.framework import func_graph

        self.graph: Any = func_graph.FuncGraph("eager_step")
        self._tensors: dict[int, Any] = {}
        self._places: dict[tuple[str, int], Place] = {}
        variables, functions, self._iterators = _of_process(operations)
        self.graph.variables = variables
        self.variables = variables
        """Those that the operations read or write."""
        with self.graph.as_default():
            for number, operation in enumerate(operations):
                self._add(number, operation, functions.get(operation.type))

    def place(self, tensor: Any) -> Place:
        """Where one of the graph's tensors is to be had when the operations run again."""
        return self._places[tensor.op.name, tensor.value_index]

    def _add(self, number: int, operation: EagerOperation, function: Any) -> None:
        inputs = [
            self._given(one, Place(number, made=False, index=index))
            for index, one in enumerate(operation.inputs)
        ]
        if function is None:
            kind, attributes = operation.type, _attributes(operation)
        else:
            self.graph._add_function_recursive(function)
            kind, attributes = _CALL, _of_call(operation, function)
        scope = _IN_GRADIENTS if operation.in_gradients else ""
        added = self.graph._create_op_internal(
            kind,
            inputs,
            [one.dtype for one in operation.outputs],
            name=f"{scope}{kind}",
            attrs=attributes,
            compute_device=False,
        )
        for index, (tensor, made) in enumerate(zip(added.outputs, operation.outputs, strict=True)):
            tensor.set_shape(made.shape)
            self._knows(made, tensor, Place(number, made=True, index=index))

    def _given(self, tensor: EagerTensor, place: Place) -> Any:
        from tensorflow.python.framework import constant_op
        from tensorflow.python.ops import array_ops

        if tensor.id not in self._tensors:
            handle = None if tensor.handle is None else tensor.handle()
            if handle is not None and id(handle) not in self._iterators:
                made = self.graph.capture(handle)
            elif tensor.integers is not None:
                made = constant_op.constant(tensor.integers, tensor.dtype)
            else:
                made = array_ops.placeholder(tensor.dtype, tensor.shape)
            self._knows(tensor, made, place)
        return self._tensors[tensor.id]

    def _knows(self, tensor: EagerTensor, made: Any, place: Place) -> None:
        self._tensors[tensor.id] = made
        self._places[made.op.name, made.value_index] = place


def _attributes(operation: EagerOperation) -> Mapping[str, Any]:
    """As a graph has them, but for those that are left to TensorFlow's defaults: run by itself, an
    operation may be given None for one, as a dataset's prefetch is for its slack."""
    from tensorflow.python.framework import op_def_library, op_def_registry

    definition = op_def_registry.get(operation.type)
    kinds = {one.name: one.type for one in definition.attr} if definition is not None else {}
    names, values = operation.attributes[::2], operation.attributes[1::2]
    return {
        name: op_def_library.value_to_attr_value(value, kinds[name], name)
        for name, value in zip(names, values, strict=True)
        if name in kinds and value is not None
    }


def _of_call(operation: EagerOperation, function: Any) -> Mapping[str, Any]:
    from tensorflow.python.framework import op_def_library

    called = {
        "Tin": ("list(type)", [one.dtype for one in operation.inputs]),
        "Tout": ("list(type)", [one.dtype for one in operation.outputs]),
        "f": ("func", _text(function.name)),
    }
    return {
        name: op_def_library.value_to_attr_value(value, kind, name)
        for name, (kind, value) in called.items()
    }


def _of_process(
    operations: Iterable[EagerOperation],
) -> tuple[list[Any], dict[str, Any], frozenset[int]]:
    """The variables whose handles the operations have, the functions that they call, and the ids of
    the handles of iterators."""
    from tensorflow.python.data.ops import iterator_ops
    from tensorflow.python.eager.polymorphic_function import atomic_function
    from tensorflow.python.ops import resource_variable_ops

    given = (one for each in operations for one in each.inputs)
    living = [one.handle() for one in given if one.handle is not None]
    handles = {id(one) for one in living if one is not None}
    kinds = resource_variable_ops.BaseResourceVariable
    variables: dict[int, Any] = {}
    functions: dict[str, Any] = {}
    iterators: set[int] = set()
    for thing in _living((kinds, atomic_function.AtomicFunction, iterator_ops.OwnedIterator)):
        if issubclass(type(thing), iterator_ops.OwnedIterator):
            iterators.add(id(thing.__dict__.get("_iterator_resource")))
        elif not issubclass(type(thing), kinds):
            functions[_text(thing.name)] = thing
        elif issubclass(type(thing), resource_variable_ops._UnreadVariable):
            continue  # what a write returns, which has the handle, too
        elif id(handle := thing.__dict__.get("_handle")) in handles:
            variables[id(handle)] = thing
    return list(variables.values()), functions, frozenset(iterators)


def _living(kinds: tuple[type, ...]) -> Iterator[Any]:
    # By class: an object may answer `isinstance` by running code of the script's.
    return (thing for thing in gc.get_objects() if issubclass(type(thing), kinds))


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
