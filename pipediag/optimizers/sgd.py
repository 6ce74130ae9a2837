"""Row-wise SGD with momentum."""

from __future__ import annotations

from typing import Any

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.row_wise import RowWise
from pipediag.optimizers.rows import Rows, Tensor, Variable


@keras.saving.register_keras_serializable(package="pipediag")
class LazySGD(RowWise, keras.optimizers.SGD):
    """SGD whose momentum leaves the rows alone which a batch has not looked up.

    Takes the arguments of `keras.optimizers.SGD`, without `gradient_accumulation_steps` and
    `loss_scale_factor`, and does the same as it with dense gradients. With a sparse one, whose
    values of the same row are added first, it changes for each of its rows, gradient `g`:

        m = momentum * m - learning_rate * g
        w = w + m                                 or, with `nesterov`,
        w = w + momentum * m - learning_rate * g

    That is the rule of TensorFlow's ResourceSparseApplyKerasMomentum. Without momentum Keras' own
    SGD touches no other rows either, and results are the same. With momentum they differ: Keras'
    own goes on moving a row that is away, `1 / (1 - momentum)` times as far in the end, and this
    one keeps its momentum for the next time. `weight_decay` reaches the rows of the batch alone.

    Raises:
        ValueError: `gradient_accumulation_steps` or `loss_scale_factor` is given.
    """

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        if self.momentum == 0 and self.weight_decay is None:
            # Without slots nothing is to be gained from a row's values being added first.
            keras.optimizers.SGD.update_step(self, gradient, variable, learning_rate)
        else:
            super().update_step(gradient, variable, learning_rate)

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        step = learning_rate * gradient
        if self.momentum == 0:
            return step
        momentum = tf.cast(self.momentum, gradient.dtype)
        moved = rows.change(self.momentums[slot], lambda before: momentum * before - step)
        return step - momentum * moved if self.nesterov else -moved
