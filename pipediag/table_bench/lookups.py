"""A table, and how rows of it are looked up: as the run does, and each way out that can be run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from pipediag.session.table_bench import BenchTable
from pipediag.vocabulary import WayName

Tensor = Any

_MULTIPLIER = 2_654_435_761
"""Knuth's, of multiplicative hashing."""
_ROWS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Lookup:
    """What gives the vectors of a batch."""

    of: Callable[[Any], Tensor]
    variables: list[Any] = field(default_factory=list)
    """Those of Keras that a step trains."""
    traced: bool = True
    """Whether it can be part of a `tf.function`, and takes ids as a tensor, not an array."""


def as_it_is(table: BenchTable) -> Lookup:
    """As the run has it."""
    return _of_layer(table, table.rows, table.dtype)


@contextmanager
def way_out(way: WayName, table: BenchTable, buckets: int, directory: Path) -> Iterator[Lookup]:
    """The table in another form; of the other ways, which change its update alone, as it is."""
    if way == "memory-mapped and frozen":
        with _mapped(table, directory) as lookup:
            yield lookup
        return
    yield _other_form(way, table, buckets)


def _other_form(way: WayName, table: BenchTable, buckets: int) -> Lookup:
    if way == "bfloat16":
        return _of_layer(table, table.rows, "bfloat16")
    if way == "8-bit rows":
        return _of_bytes(table)
    if way == "hashing":
        return _hashed(table, math.ceil(table.rows / buckets))
    if way == "quotient-remainder":
        return _quotient_remainder(table, buckets)
    return as_it_is(table)


def _of_layer(table: BenchTable, rows: int, dtype: str) -> Lookup:
    layer = keras.layers.Embedding(rows, table.dim, dtype=dtype)
    layer.build((None,))
    of = layer if table.reads_whole else _rows_of(layer.embeddings)
    return Lookup(of, [layer.embeddings])


def _rows_of(variable: Any) -> Callable[[Any], Tensor]:
    return lambda ids: tf.nn.embedding_lookup(variable.value, ids)


def _hashed(table: BenchTable, rows: int) -> Lookup:
    inner = _of_layer(table, rows, table.dtype)

    def of(ids: Any) -> Tensor:
        spread = tf.cast(ids, tf.int64) * _MULTIPLIER
        return inner.of(tf.cast(tf.math.floormod(spread, rows), ids.dtype))

    return Lookup(of, inner.variables)


def _quotient_remainder(table: BenchTable, buckets: int) -> Lookup:
    quotients = _of_layer(table, math.ceil(table.rows / buckets), table.dtype)
    remainders = _of_layer(table, buckets, table.dtype)

    def of(ids: Any) -> Tensor:
        return quotients.of(ids // buckets) * remainders.of(ids % buckets)

    return Lookup(of, quotients.variables + remainders.variables)


def _of_bytes(table: BenchTable) -> Lookup:
    """A byte a value, a scale a row, and the vectors in the table's own type."""
    rng = np.random.default_rng(0)
    values = tf.Variable(rng.integers(-127, 128, (table.rows, table.dim), np.int8), trainable=False)
    scales = tf.Variable(rng.random((table.rows, 1), np.float32), trainable=False)

    def of(ids: Any) -> Tensor:
        rows = tf.cast(tf.gather(values, ids), tf.float32)
        return tf.cast(rows * tf.gather(scales, ids), table.dtype)

    return Lookup(of)


@contextmanager
def _mapped(table: BenchTable, directory: Path) -> Iterator[Lookup]:
    """Vectors of a file that was just written, so that the system has it in memory."""
    dtype = tf.as_dtype(table.dtype).as_numpy_dtype
    rng = np.random.default_rng(0)
    # Without a name, the file goes with the process, however that ends.
    with TemporaryFile(dir=directory) as file:
        for first in range(0, table.rows, _ROWS_AT_ONCE):
            rows = min(_ROWS_AT_ONCE, table.rows - first)
            file.write(rng.random((rows, table.dim), np.float32).astype(dtype).tobytes())
        file.flush()
        kept = np.memmap(file, dtype, mode="r", shape=(table.rows, table.dim))
        yield Lookup(lambda ids: tf.constant(kept[ids]), traced=False)
