"""What a mapped function hands out in place of ids: vectors of a table, or one number a class."""

from __future__ import annotations

from typing import Any

from pipediag.session.recorded_widening import RecordedWidening
from pipediag.vocabulary import WideningKind

_SAME_VALUES = ("Identity", "StopGradient", "Reshape", "ExpandDims", "Squeeze", "Cast")


def widenings_of(graph: Any, element_spec: Any) -> list[RecordedWidening]:
    """One for each part of an element that is looked up, or one-hot, as it is handed out."""
    outside = {internal.op.name for _, internal in getattr(graph, "captures", ())}
    labels = _labels(element_spec, len(graph.outputs))
    found = []
    for place, tensor in enumerate(graph.outputs):
        widening = _widening(_made_by(tensor), tensor, outside)
        if widening is not None:
            widening.label = place in labels
            found.append(widening)
    return found


def _labels(element_spec: Any, count: int) -> range:
    """Which of the tensors are the second of what `fit` takes as inputs, labels and weights."""
    from tensorflow.python.util import nest

    if not isinstance(element_spec, tuple) or len(element_spec) not in (2, 3):
        return range(0)
    inputs, labels = (len(nest.flatten(one)) for one in element_spec[:2])
    return range(inputs, inputs + labels) if len(nest.flatten(element_spec)) == count else range(0)


def _made_by(tensor: Any) -> Any:
    op = tensor.op
    while op.type in _SAME_VALUES:
        op = op.inputs[0].op
    return op


def _widening(op: Any, handed_out: Any, outside: set[str]) -> RecordedWidening | None:
    kind: WideningKind = "one-hot"
    if op.type == "OneHot":
        ids, rows = op.inputs[0], _constant(op.inputs[1])
    elif op.type in ("GatherV2", "ResourceGather") and _is_a_table(op, outside):
        ids, rows = op.inputs[1], _rows(op)
        kind = "lookup"
    else:
        return None
    before, after = _bytes(ids), _bytes(handed_out)
    if rows is None or before is None or after is None:
        return None
    return RecordedWidening(kind, rows, before, after)


def _is_a_table(op: Any, outside: set[str]) -> bool:
    """Whether it gathers rows of numbers that are no part of the element."""
    if op.type == "ResourceGather":
        return True
    table = op.inputs[0]
    made = _value_of(table.op)
    from_outside = made.type == "Const" or made.name in outside
    by_rows = table.shape.rank is not None and table.shape.rank >= 2
    along_rows = _constant(op.inputs[2]) == 0
    return bool(table.dtype.is_floating and by_rows and along_rows and from_outside)


def _value_of(op: Any) -> Any:
    while op.type in (*_SAME_VALUES, "ReadVariableOp"):
        op = op.inputs[0].op
    return op


def _rows(op: Any) -> int | None:
    if op.type == "GatherV2":
        length = op.inputs[0].shape[0]
        return None if length is None else int(length)
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(op.inputs[0])
    if not data.shape_and_type or not data.shape_and_type[0].shape.dim:
        return None
    return int(data.shape_and_type[0].shape.dim[0].size)


def _constant(tensor: Any) -> int | None:
    from tensorflow.python.framework import tensor_util

    value = tensor_util.constant_value(tensor)
    return None if value is None else int(value)


def _bytes(tensor: Any) -> int | None:
    count = tensor.shape.num_elements()
    return None if count is None else int(count) * int(tensor.dtype.size)
