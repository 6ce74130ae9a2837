"""What a function's graph holds as constants: arrays that its Python reads, written into it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_CONSTANT = "Const"


def constant_bytes(operations: Iterable[Any]) -> int:
    """Bytes of all constants among these operations of a graph.

    Reckoned from their shapes, as to read a constant copies it. One value for a whole shape, which
    TensorFlow writes but once, counts as if each were written.
    """
    constants = (one.outputs[0] for one in operations if one.type == _CONSTANT)
    return sum(_bytes(tensor) for tensor in constants)


def _bytes(tensor: Any) -> int:
    count = tensor.shape.num_elements()
    return 0 if count is None else int(count) * int(tensor.dtype.size or 0)
