"""Row-wise RMSprop."""

from __future__ import annotations

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.row_wise import RowWise
from pipediag.optimizers.rows import Rows, Tensor


@keras.saving.register_keras_serializable(package="pipediag")
class LazyRMSprop(RowWise, keras.optimizers.RMSprop):
    """RMSprop that leaves the rows alone which a batch has not looked up.

    Takes the arguments of `keras.optimizers.RMSprop`, without `gradient_accumulation_steps` and
    `loss_scale_factor`, and does the same as it with dense gradients. With a sparse one, whose
    values of the same row are added first, it changes for each of its rows, gradient `g`:

        v = rho * v + (1 - rho) * g ** 2
        a = rho * a + (1 - rho) * g                                 where `centered`, else a = 0
        s = momentum * s + learning_rate * g / sqrt(v - a ** 2 + epsilon)
        w = w - s

    That is the rule of TensorFlow's ResourceSparseApplyRMSProp, with epsilon as in Keras. Results
    differ from Keras' own: `v`, `a` and `s` of a row do not decay while it is away, so that a row
    which comes back meets the size of its own last gradients, where with Keras' RMSprop its first
    step would be up to `1 / sqrt(1 - rho)` times the learning rate, 3.2 by default. With
    `momentum` a row does not move while it is away. `weight_decay` reaches the rows of the batch
    alone.

    Raises:
        ValueError: `gradient_accumulation_steps` or `loss_scale_factor` is given.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        rho = tf.cast(self.rho, gradient.dtype)
        scale = rows.change(
            self._velocities[slot],
            lambda before: rho * before + (1 - rho) * tf.square(gradient),
        )
        if self.centered:
            average = rows.change(
                self._average_gradients[slot],
                lambda before: rho * before + (1 - rho) * gradient,
            )
            scale -= tf.square(average)
        step = learning_rate * gradient / tf.sqrt(scale + self.epsilon)
        if self.momentum > 0:
            return rows.change(self._momentums[slot], lambda before: self.momentum * before + step)
        return step
