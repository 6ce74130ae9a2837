"""Functions that were traced before we came, and write trainable variables as their graphs tell.

What is traced under us tells so itself, by the methods of variables that it calls.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from typing import Any

_WRITE = re.compile(
    r"Assign(Add|Sub)?VariableOp|Resource(Sparse)?Apply\w+|Resource(Scatter|StridedSlice)\w+"
)
_CALLS = {
    "PartitionedCall": ("f", 0),
    "StatefulPartitionedCall": ("f", 0),
    "While": ("body", 0),
    "StatelessWhile": ("body", 0),
    "If": (("then_branch", "else_branch"), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
}
"""By the operation: which attributes name the functions, and their first argument's place."""


def functions_that_train(function_class: type) -> Iterator[Any]:
    """Those of all that live."""
    for thing in gc.get_objects():
        if issubclass(type(thing), function_class) and _trains(thing):
            yield thing


def _trains(function: Any) -> bool:
    try:
        return any(map(_writes, function._list_all_concrete_functions()))
    except Exception:
        return False  # of a kind that can't be read, or on its way out


def _writes(concrete: Any) -> bool:
    graph = concrete.graph
    trainable = {
        id(variable.handle)
        for variable in graph.variables
        # Counters are made trainable by default too; none of them can be trained.
        if variable.trainable and variable.dtype.is_floating
    }
    handles = {id(inner) for outer, inner in graph.captures if id(outer) in trainable}
    return bool(handles) and _writes_one_of(graph, handles)


def _writes_one_of(graph: Any, handles: set[int]) -> bool:
    for operation in graph.get_operations():
        inputs = operation.inputs
        if _WRITE.fullmatch(operation.type):
            if id(inputs[0]) in handles:
                return True
        elif operation.type in _CALLS:
            names, first = _CALLS[operation.type]
            for name in (names,) if isinstance(names, str) else names:
                inner = _called(graph, operation, name)
                given = zip(inputs[first:], inner.inputs, strict=False) if inner else ()
                passed = {id(within) for outside, within in given if id(outside) in handles}
                if passed and _writes_one_of(inner, passed):
                    return True
    return False


def _called(graph: Any, operation: Any, attribute: str) -> Any:
    """The graph of a function that an operation calls; None where it is not to be found."""
    function = graph._get_function(operation.get_attr(attribute).name)
    return getattr(function, "graph", None)
