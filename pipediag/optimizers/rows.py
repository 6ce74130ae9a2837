"""Rows of tables: a sparse gradient with one value a row, and rows read and written alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipediag.optimizers.frameworks import tf

Tensor = Any
Variable = Any
SparseGradient = Any
"""A `tf.IndexedSlices`."""


def is_sparse(gradient: Any) -> bool:
    """Whether it names the rows that it is of."""
    return isinstance(gradient, tf.IndexedSlices)


def sum_duplicates(gradient: SparseGradient) -> SparseGradient:
    """The same gradient with each row named once: values of the same row are added.

    Under XLA, where shapes are fixed, it stays as long as it was: rows past the last one of the
    table fill it up, with zeros for values. XLA passes over writes to such rows.
    """
    if _compiled_by_xla():
        rows, positions, values = _distinct_at_fixed_size(gradient.indices, gradient.values)
    else:
        rows, positions = tf.unique(gradient.indices)
        values = gradient.values
    summed = tf.math.unsorted_segment_sum(values, positions, tf.size(rows))
    return tf.IndexedSlices(summed, rows, gradient.dense_shape)


def _distinct_at_fixed_size(indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distinct indices, filled up; for each value its position there; the values in that order.

    `tf.unique` compiles too, to a loop with a turn for each index.
    """
    order = tf.argsort(indices, stable=True)
    ordered = tf.gather(indices, order)
    is_first = tf.concat([tf.ones_like(ordered[:1], tf.bool), ordered[1:] != ordered[:-1]], axis=0)
    positions = tf.cumsum(tf.cast(is_first, tf.int32)) - 1
    past_the_end = tf.fill(tf.shape(ordered), ordered.dtype.max)
    rows = tf.tensor_scatter_nd_update(past_the_end, positions[:, tf.newaxis], ordered)
    return rows, positions, tf.gather(values, order)


def _compiled_by_xla() -> bool:
    # No public function says it.
    from tensorflow.python.ops import control_flow_util

    return bool(control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()))


class Rows:
    """The rows that a batch has looked up, each once: of the table, and of its slots."""

    def __init__(self, indices: Tensor) -> None:
        self._indices = indices

    def of(self, variable: Variable) -> Tensor:
        """Their values; the rest of the variable is not read."""
        native = _native(variable)
        return tf.raw_ops.ResourceGather(
            resource=native.handle, indices=self._indices, dtype=native.dtype
        )

    def change(self, variable: Variable, changed: Callable[[Tensor], Tensor]) -> Tensor:
        """Put what `changed` makes of their values in their place, and give that back."""
        values = changed(self.of(variable))
        tf.raw_ops.ResourceScatterUpdate(
            resource=_native(variable).handle, indices=self._indices, updates=values
        )
        return values

    def subtract(self, variable: Variable, values: Tensor) -> None:
        """Take a value from each."""
        tf.raw_ops.ResourceScatterSub(
            resource=_native(variable).handle, indices=self._indices, updates=values
        )


def _native(variable: Variable) -> Variable:
    # Keras hands over the table as TensorFlow's own, and keeps slots as variables of Keras. Of a
    # variable with a copy on each replica, `handle` is that of the replica which is updated.
    return variable if isinstance(variable, tf.Variable) else variable.value
