"""Base of the row-wise optimizers: rows of tables read and written alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def _keras_3_on_tensorflow() -> tuple[Any, Any]:
    """Return both modules.

    Raises:
        ImportError: one is missing, Keras is older than 3, or has another backend.
    """
    try:
        import keras
    except ModuleNotFoundError as error:
        raise ImportError(
            "pipediag.optimizers needs Keras 3 and TensorFlow, and Keras is not installed. "
            "Install them with: pip install tensorflow"
        ) from error
    if int(keras.__version__.partition(".")[0]) < 3:
        raise ImportError(
            f"pipediag.optimizers needs Keras 3, and Keras {keras.__version__} is installed, whose "
            "optimizers are built differently. Update to TensorFlow 2.16 or newer, or use the "
            "LazyAdam of TensorFlow Addons."
        )
    if (backend := keras.backend.backend()) != "tensorflow":
        raise ImportError(
            f"pipediag.optimizers needs Keras on TensorFlow, and Keras runs on {backend}, where "
            "gradients of embeddings are dense. Set KERAS_BACKEND=tensorflow, or use the "
            "optimizers of Keras."
        )
    import tensorflow

    return keras, tensorflow


keras: Any
tf: Any
keras, tf = _keras_3_on_tensorflow()

Tensor = Any
Variable = Any
SparseGradient = Any
"""A `tf.IndexedSlices`."""


def is_sparse(gradient: Any) -> bool:
    """Return True if the gradient names the rows that it has values for."""
    return isinstance(gradient, tf.IndexedSlices)


def sum_duplicates(gradient: SparseGradient) -> SparseGradient:
    """Return the gradient with each row named once: values of the same row are added.

    Under XLA, where shapes are fixed, rows past the last one of the table fill it up. XLA passes
    over writes to such rows.
    """
    if _compiled_by_xla():
        rows, positions, values = _distinct_at_fixed_size(gradient.indices, gradient.values)
    else:
        rows, positions = tf.unique(gradient.indices)
        values = gradient.values
    summed = tf.math.unsorted_segment_sum(values, positions, tf.size(rows))
    return tf.IndexedSlices(summed, rows, gradient.dense_shape)


def _distinct_at_fixed_size(indices: Tensor, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return distinct indices, filled up, each value's position in them, and the ordered values."""
    # `tf.unique` compiles to a loop over the indices.
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
    """Rows that a batch has looked up, each once, in a table and in its slots."""

    def __init__(self, indices: Tensor) -> None:
        self._indices = indices

    def of(self, variable: Variable) -> Tensor:
        """Read the rows of the variable, and nothing else of it."""
        native = _native(variable)
        return tf.raw_ops.ResourceGather(
            resource=native.handle, indices=self._indices, dtype=native.dtype
        )

    def change(self, variable: Variable, changed: Callable[[Tensor], Tensor]) -> Tensor:
        """Replace the rows by what `changed` makes of them, and return that."""
        values = changed(self.of(variable))
        tf.raw_ops.ResourceScatterUpdate(
            resource=_native(variable).handle, indices=self._indices, updates=values
        )
        return values

    def subtract(self, variable: Variable, values: Tensor) -> None:
        tf.raw_ops.ResourceScatterSub(
            resource=_native(variable).handle, indices=self._indices, updates=values
        )


def _native(variable: Variable) -> Variable:
    # Keras hands over the table as TensorFlow's own, and keeps slots as variables of Keras. Of a
    # variable with a copy on each replica, `handle` is that of the replica which is updated.
    return variable if isinstance(variable, tf.Variable) else variable.value


class RowWise(keras.optimizers.Optimizer):
    """Base class to put before one of Keras' optimizers, which then does what is dense.

    A sparse gradient has its duplicates summed, and `row_step` computes the change of its rows.
    Weight decay is applied to those rows alone, clipping to the sums, as if they were dense.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take the arguments of Keras' own optimizer.

        Raises:
            ValueError: an argument would make sparse gradients dense or fail on them, or Keras
                itself refuses it.
        """
        super().__init__(*args, **kwargs)
        if self.gradient_accumulation_steps:
            raise ValueError(
                f"{type(self).__name__} does not support gradient_accumulation_steps: Keras adds "
                "gradients up in a table of full size, so every update would be dense. Use larger "
                "batches, or Keras' own optimizer."
            )
        if self.loss_scale_factor is not None:
            raise ValueError(
                f"{type(self).__name__} does not support loss_scale_factor: Keras cannot divide a "
                "sparse gradient by it. Wrap the optimizer in keras.optimizers.LossScaleOptimizer, "
                "as compile() does for mixed_float16."
            )

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        """Change rows of the `slot`-th slot of each kind; return what to subtract from the table.

        The gradient has one value a row, in the dtype of the table, as the learning rate has.
        """
        raise NotImplementedError

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        if not is_sparse(gradient):
            super().update_step(gradient, variable, learning_rate)
            return
        summed = sum_duplicates(gradient)
        rows = Rows(summed.indices)
        rate = tf.cast(learning_rate, variable.dtype)
        slot = self._get_variable_index(variable)
        step = self.row_step(rows, tf.cast(summed.values, variable.dtype), slot, rate)
        if self.weight_decay is not None and self._use_weight_decay(variable):
            step += rows.of(variable) * tf.cast(self.weight_decay, variable.dtype) * rate
        rows.subtract(variable, step)

    def _clip_gradients(self, grads: Sequence[Any]) -> Sequence[Any]:
        clips = any((self.clipnorm, self.clipvalue, self.global_clipnorm))
        if not clips or not any(map(is_sparse, grads)):
            return super()._clip_gradients(grads)  # type: ignore[no-any-return]
        # The norm of a sum is not that of its terms.
        grads = [sum_duplicates(grad) if is_sparse(grad) else grad for grad in grads]
        if self.global_clipnorm:
            # Keras' own would make sparse gradients dense.
            clipped, _ = tf.clip_by_global_norm(grads, self.global_clipnorm)
            return clipped  # type: ignore[no-any-return]
        return super()._clip_gradients(grads)  # type: ignore[no-any-return]

    def _apply_weight_decay(self, variables: Sequence[Variable]) -> None:
        """Do nothing yet: only with the gradients is it known which variables decay by rows."""

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Sequence[Variable], learning_rate: Any
    ) -> None:
        pairs = zip(grads, trainable_variables, strict=True)
        super()._apply_weight_decay([variable for grad, variable in pairs if not is_sparse(grad)])
        super()._backend_update_step(grads, trainable_variables, learning_rate)
