"""Operations of a map's function that are made otherwise for a batch of its elements.

They are found in the graph of a single element, with the lines that a patch rewrites: an axis that
counts from the front becomes the next one, a sum over all axes leaves out the first, and what
broadcasts against more dimensions gets one behind the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.capture.callsites import is_users
from pipediag.session.recording import RowOperation
from pipediag.tensorflow_names import BROADCASTING, PARSING, REDUCING, ROW_FUNCTIONS

_AXES = {"ConcatV2", "ExpandDims", "ArgMax", *REDUCING}
"""Operations of which the last input is the axis."""
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
"""Operations whose results are no values of an element, and have no row for each."""
_TRACES_MAPS = "data/ops/structured_function.py"
_MOST = 256
"""Own choice: nobody writes more of them into one function."""


def row_operations(graph: Any) -> list[RowOperation]:
    """Return the operations of a traced function that a batch needs in another form.

    Those in functions within it, such as the branches of `tf.cond`, are not among them.
    """
    found: dict[str, RowOperation] = {}
    for operation in graph.get_operations():
        values, kind = list(operation.inputs), operation.type
        operand, rank = None, _rank(values[0]) if values else None
        if kind in BROADCASTING:
            operand = next((at for at in (0, 1) if _is_shorter(values[at], values[1 - at])), None)
            rank = None if operand is None else _rank(values[operand])
            needed = operand is not None
        elif kind == "Pack":
            needed = operation.get_attr("axis") >= 0 and any(map(_depends_on_element, values))
        elif kind in _AXES:
            needed = _counts_from_the_front(values[-1]) and any(
                map(_depends_on_element, values[:-1])
            )
        else:
            whole = kind in ("Reshape", "StridedSlice") and _depends_on_element(values[0])
            needed = kind == PARSING or whole
        if not needed or len(found) == _MOST:
            continue
        calls, names = _user_lines(operation)
        if kind == PARSING or _is_named(kind, names):
            row = RowOperation(kind, calls, rank, operand, count=0)
            found.setdefault(repr(row), row).count += 1
    return list(found.values())


def _user_lines(operation: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the user's lines from the function of the map down to the operation, and the functions
    of TensorFlow that the last of them calls."""
    lines: list[tuple[str, int]] = []
    names: list[str] = []
    for frame in operation.traceback:
        if frame.filename.replace("\\", "/").endswith(_TRACES_MAPS):
            lines.clear()
        elif is_users(frame.filename):
            # AutoGraph has a frame of its own for a lambda.
            if lines[-1:] != [(frame.filename, frame.lineno)]:
                lines.append((frame.filename, frame.lineno))
            names.clear()
        else:
            names.append(frame.name)
    return lines, names


_AROUND = frozenset(
    {
        *("_call_unconverted", "converted_call", "error_handler", "new_func"),
        *("op_dispatch_handler", "wrapped", "wrapper"),
    }
)
"""Functions of TensorFlow that call the one that a user's line names."""
_OF_OPERATORS = frozenset(
    {
        *("_tensor_equals_factory", "_tensor_not_equals_factory", "tensor_equals"),
        *("tensor_not_equals", "binary_op_wrapper", "r_binary_op_wrapper"),
    }
)


def _is_named(kind: str, names: Sequence[str]) -> bool:
    """Return True if the user's line names what makes the operation: a patch changes that call, and
    not those that another function of TensorFlow makes."""
    first = next((name for name in names if name not in _AROUND), "")
    named = first.removesuffix("_v2") == ROW_FUNCTIONS[kind]
    return named or (kind in BROADCASTING and first in _OF_OPERATORS)


def _depends_on_element(value: Any) -> bool:
    """Return True if a tensor of a function holds something of what that is given."""
    graph: Any = getattr(value, "graph", None)
    if not hasattr(graph, "captures"):
        return False
    given = {one.name for one in graph.inputs} - {inside.name for _, inside in graph.captures}
    seen, left = set[str](), [value]
    while left:
        one = left.pop()
        if one.name in given:
            return True
        if one.name not in seen and one.op.type not in _SIZES:
            seen.add(one.name)
            left.extend(one.op.inputs)
    return False


def _rank(value: Any) -> int | None:
    rank: int | None = value.shape.rank
    return rank


def _is_shorter(one: Any, other: Any) -> bool:
    """Return True if a value comes from the element and has less dimensions than another."""
    ranks = _rank(one), _rank(other)
    if ranks[0] is None or ranks[1] is None:
        return False
    return ranks[0] < ranks[1] and _depends_on_element(one)


def _counts_from_the_front(axis: Any) -> bool:
    """Return True unless an operation's axes are known to count from the last dimension."""
    from tensorflow.python.framework import tensor_util

    known = tensor_util.constant_value(axis)
    return known is None or not bool((known < 0).all()) or known.size == 0
