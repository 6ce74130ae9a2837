"""What all row-wise optimizers share: dense gradients are Keras' own business, rows are ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.rows import Rows, Tensor, Variable, is_sparse, sum_duplicates


class RowWise(keras.optimizers.Optimizer):
    """To be put before one of Keras' optimizers, which then does what is dense.

    A sparse gradient has its duplicates summed, and `row_step` says what its rows change by.
    Weight decay is applied to those rows alone, clipping to the sums, as if they were dense.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take what Keras' own optimizer takes.

        Raises:
            ValueError: something is asked for that would make sparse gradients dense, or fail on
                them; or Keras itself refuses an argument.
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
        """Change the rows' slots, the `slot`-th of each kind; what to take from the table's rows.

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
        """Nothing yet: only the gradients tell whose rows alone decay."""

    def _backend_update_step(
        self, grads: Sequence[Any], trainable_variables: Sequence[Variable], learning_rate: Any
    ) -> None:
        pairs = zip(grads, trainable_variables, strict=True)
        super()._apply_weight_decay([variable for grad, variable in pairs if not is_sparse(grad)])
        super()._backend_update_step(grads, trainable_variables, learning_rate)
