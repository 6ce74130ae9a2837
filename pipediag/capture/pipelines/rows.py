"""Operations of a map's function that are made otherwise for a batch of its elements.

They are found in the graph of a single element, with the lines that a patch rewrites, and made in
the form for batches while a trial traces the function again. An axis that counts from the front
becomes the next one, a sum over all axes leaves out the first, and what broadcasts against more
dimensions gets one behind the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pipediag.capture.callsites import AUTOGRAPH_FILE, frames, is_users
from pipediag.session.recording import RowOperation
from pipediag.tensorflow_names import BROADCASTING, PARSING, REDUCING, ROW_FUNCTIONS

_AXES = {"Pack": "axis", "ConcatV2": "axis", "ExpandDims": "dim", "ArgMax": "dimension"}
_AXES |= dict.fromkeys(REDUCING, "reduction_indices")
"""Operations along axes, and the names of these."""
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
"""What they return is no value of an element, and has no row for each."""
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
            needed = operation.get_attr("axis") >= 0 and any(map(_of_element, values))
        elif kind in _AXES:
            # All but the axis, which is the last one.
            needed = _counts_from_the_front(values[-1]) and any(map(_of_element, values[:-1]))
        else:
            needed = kind == PARSING or (kind == "Reshape" and _of_element(values[0]))
        if not needed or len(found) == _MOST:
            continue
        calls, names = _calls(operation)
        if kind == PARSING or _makes(kind, names):
            row = RowOperation(kind, calls, rank, operand, count=0)
            found.setdefault(repr(row), row).count += 1
    return list(found.values())


def _calls(operation: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the user's lines from the function of the map down to the operation, and the functions
    of TensorFlow that the last of them calls."""
    lines: list[tuple[str, int]] = []
    names: list[str] = []
    for frame in operation.traceback:
        if frame.filename.replace("\\", "/").endswith(_TRACES_MAPS):
            lines.clear()
        elif is_users(frame.filename):
            lines.append((frame.filename, frame.lineno))
            names.clear()
        else:
            names.append(frame.name)
    return lines, names


def _called_now() -> list[str]:
    """Return the functions of TensorFlow that the user's line calls which is running."""
    names: list[str] = []
    for frame in frames():
        file = frame.f_code.co_filename
        if AUTOGRAPH_FILE in file or is_users(file):
            break
        names.append(frame.f_code.co_name)
    return names[::-1]


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


def _makes(kind: str, names: Sequence[str]) -> bool:
    """Return True if the user's line names what makes the operation: a patch changes that call, and
    not those that another function of TensorFlow makes."""
    first = next((name for name in names if name not in _AROUND), "")
    named = first.removesuffix("_v2") == ROW_FUNCTIONS[kind]
    return named or (kind in BROADCASTING and first in _OF_OPERATORS)


def _of_element(value: Any) -> bool:
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
    """Return the number of dimensions of a tensor, or of what becomes one."""
    from tensorflow.python.framework import tensor_shape

    if isinstance(value, list | tuple):
        inner = _rank(value[0]) if value else 0
        return None if inner is None else inner + 1
    rank: int | None = tensor_shape.TensorShape(getattr(value, "shape", ())).rank
    return rank


def _is_shorter(one: Any, other: Any, *, of_batch: bool = False) -> bool:
    """Return True if a value comes from the element and has less dimensions in it than another."""
    ranks = _rank(one), _rank(other)
    if ranks[0] is None or ranks[1] is None or not _of_element(one):
        return False
    rows = 1 if of_batch else 0
    return ranks[0] - rows < ranks[1] - (rows if _of_element(other) else 0)


def _counts_from_the_front(axis: Any) -> bool:
    numbers = _numbers(axis)
    return numbers is None or any(one >= 0 for one in numbers)


def _numbers(value: Any) -> list[int] | None:
    """Return the numbers of a constant, or None for what is computed."""
    from tensorflow.python.framework import tensor_util

    known = tensor_util.constant_value(value) if hasattr(value, "dtype") else value
    known = known.tolist() if hasattr(known, "tolist") else known
    numbers = list(known) if isinstance(known, list | tuple) else [known]
    return numbers if all(isinstance(one, int) for one in numbers) else None


def made_for_batches() -> list[tuple[Any, str, Any]]:
    """Return attributes of TensorFlow with which it makes these operations for batches."""
    from tensorflow.python.framework import op_def_library
    from tensorflow.python.ops import math_ops

    make = op_def_library._apply_op_helper

    def made(op_type_name: str, name: Any = None, **given: Any) -> Any:
        if op_type_name in ROW_FUNCTIONS and _makes(op_type_name, _called_now()):
            given |= dict(_for_batches(op_type_name, given, make))
        return make(op_type_name, name, **given)

    def not_a_scalar(_keepdims: Any, _axis: Any, output: Any) -> Any:
        return output

    return [
        (op_def_library, "_apply_op_helper", made),
        (math_ops, "_may_reduce_to_scalar", not_a_scalar),
    ]


def _for_batches(kind: str, given: dict[str, Any], make: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of an operation that a batch needs otherwise."""
    if kind in BROADCASTING:
        for name, other in (("x", given["y"]), ("y", given["x"])):
            if _is_shorter(given[name], other, of_batch=True):
                _, _, _, [longer] = make("ExpandDims", None, input=given[name], dim=1)
                yield name, longer
    elif kind in _AXES:
        values = given["values"] if "values" in given else [given["input"]]
        rank, name = _rank(values[0]), _AXES[kind]
        if rank is not None and any(map(_of_element, values)):
            yield name, _next_axis(given[name], rank, reduces=kind in REDUCING)
    elif kind == "Reshape" and _of_element(given["tensor"]):
        sizes = _numbers(given["shape"])
        if sizes is not None and -1 not in sizes:
            yield "shape", [-1, *sizes]


def _next_axis(axis: Any, rank: int, *, reduces: bool) -> Any:
    """Return the axis of a batch's rows that was one of the rows; `rank` is the batch's."""
    from tensorflow.python.framework import constant_op, dtypes

    numbers = _numbers(axis)
    if numbers is None:
        return axis
    if reduces and sorted(numbers) == list(range(rank)):
        # All of them were meant, which for a batch are all but the first.
        return constant_op.constant(numbers[1:], dtypes.int32)
    one_more = [one + 1 if one >= 0 else one for one in numbers]
    return one_more if reduces else one_more[0]
