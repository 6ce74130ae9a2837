"""Embedding tables: how much memory they and their optimizer's slots take."""

from __future__ import annotations

import numpy as np

from pipediag.session.loops import Embedding
from pipediag.session.recording import RecordedVariable

_OTHER_TYPES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Types that NumPy alone does not know."""

_FLOAT32 = 4
_NOT_MEASURED = "Which rows a step touches, and how they are updated, is not measured yet."


def describe_embeddings(variables: list[RecordedVariable]) -> list[Embedding]:
    """One row for each table, the largest first. Slots are reckoned at the width of the table."""
    rows = [_describe(variable) for variable in variables]
    return sorted(rows, key=lambda row: -row.table_bytes)


def _describe(variable: RecordedVariable) -> Embedding:
    table = variable.rows * variable.dim * item_bytes(variable.dtype)
    return Embedding(
        layer=variable.layer,
        rows=variable.rows,
        dim=variable.dim,
        dtype=variable.dtype,
        table_bytes=table,
        slot_bytes=table * variable.slots,
        gradient=None,
        update=None,
        rows_touched_per_step=None,
        trainable=variable.trainable,
        missing=_NOT_MEASURED,
    )


def item_bytes(dtype: str) -> int:
    """Bytes of one number of a TensorFlow type, 4 for a type that is not known."""
    if dtype in _OTHER_TYPES:
        return _OTHER_TYPES[dtype]
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return _FLOAT32
