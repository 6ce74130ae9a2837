"""Embedding tables: what they take, how a step uses them, and by which ids."""

from __future__ import annotations

import numpy as np

from pipediag.session.embeddings import Embedding, EmbeddingIds
from pipediag.session.recorded_tables import RecordedIds, RecordedTableUse, RecordedVariable
from pipediag.vocabulary import SparseOrDense

_OTHER_TYPES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Types that NumPy alone does not know."""

_FLOAT32 = 4
_READS = {"Cast"}
"""What a lookup makes of a whole table, which is no part of its update."""
_NOT_READ = "The step was not read: its loop ended before, or was not measured."
_NOT_WRITTEN = "The step does not write it."


def describe_embeddings(variables: list[RecordedVariable]) -> list[Embedding]:
    """One row for each table, the largest first.

    Where no traced step tells of the slots, they are reckoned at the width of the table.
    """
    rows = [_describe(variable) for variable in variables]
    return sorted(rows, key=lambda row: -row.table_bytes)


def _describe(variable: RecordedVariable) -> Embedding:
    use, ids = variable.use, variable.ids
    table = variable.rows * variable.dim * item_bytes(variable.dtype)
    measured = _ids(ids) if ids is not None else None
    return Embedding(
        layer=variable.layer,
        rows=variable.rows,
        dim=variable.dim,
        dtype=variable.dtype,
        table_bytes=table,
        slot_bytes=use.slot_bytes if use else table * variable.slots,
        gradient=use.gradient if use else None,
        update=_update(use) if use else None,
        rows_touched_per_step=_rows_touched(measured),
        trainable=variable.trainable,
        missing=_missing(variable),
        mask_zero=variable.mask_zero,
        variable=variable.variable if use else None,
        device=use.device if use else None,
        lookups=use.lookups if use else None,
        slots=use.slots if use else variable.slots,
        temporary_bytes=use.temporary_bytes if use else None,
        temporary_peak_bytes=use.temporary_peak_bytes if use else None,
        whole_table_operations=use.whole_table_operations if use else {},
        gradient_spread=use.gradient_spread if use else None,
        copied_on_lookup=use.copied_on_lookup if use else None,
        copied_bytes_per_step=table * use.copies if use else None,
        exchanged=use.exchanged if use else None,
        regularizer=variable.regularizer,
        constraint=variable.constraint,
        idle_slot_bytes=variable.idle_slot_bytes,
        file=variable.file,
        line=variable.line,
        ids=measured,
        ids_missing=None if measured else variable.ids_missing or _NOT_READ,
    )


def _rows_touched(ids: EmbeddingIds | None) -> int | None:
    return None if ids is None or ids.incomplete else round(ids.unique_per_step)


def _update(use: RecordedTableUse) -> SparseOrDense | None:
    """Dense, too, where rows alone are written, but are computed from a pass over the table."""
    if use.gradient is None:
        return None
    passes = use.whole_table_operations.keys() - _READS
    return "dense" if use.writes_whole or passes else "sparse"


def _missing(variable: RecordedVariable) -> str | None:
    if variable.use is None:
        return variable.use_missing or _NOT_READ
    return _NOT_WRITTEN if variable.use.gradient is None else None


def _ids(ids: RecordedIds) -> EmbeddingIds:
    count = len(ids.batches)
    return EmbeddingIds(
        batches=count,
        first_batch=min(ids.batches),
        last_batch=max(ids.batches),
        dtype=ids.dtype,
        lookups=ids.lookups,
        lookups_per_step=ids.lookups / count,
        unique=ids.unique,
        unique_per_step=ids.unique_per_batch,
        smallest=ids.smallest,
        largest=ids.largest,
        out_of_vocabulary_percent=_percent(ids.out_of_vocabulary, ids.lookups),
        out_of_vocabulary_missing=ids.out_of_vocabulary_missing,
        hot_rows=ids.top_rows,
        hot_percent=100 * ids.top_lookups / ids.lookups,
        hot_percent_ahead=_percent(ids.top_lookups_ahead, ids.lookups_ahead or 0),
        incomplete=ids.incomplete,
        outside=ids.outside,
        outside_examples=ids.outside_examples,
        zero_percent=_percent(ids.zero_lookups, ids.lookups),
        zeros_within=ids.zeros_within,
        zero_is_a_token=ids.zero_is_a_token,
        cast_through=ids.cast_through,
        cast_from=ids.cast_from,
        changed=ids.changed,
        changed_examples=ids.changed_examples,
        collided=ids.collided,
    )


def _percent(part: int | None, whole: int) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def item_bytes(dtype: str) -> int:
    """Bytes of one number of a TensorFlow type, 4 for a type that is not known."""
    if dtype in _OTHER_TYPES:
        return _OTHER_TYPES[dtype]
    try:
        return np.dtype(dtype).itemsize
    except TypeError:
        return _FLOAT32
