"""Row-wise Adamax."""

from __future__ import annotations

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.row_wise import RowWise
from pipediag.optimizers.rows import Rows, Tensor


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdamax(RowWise, keras.optimizers.Adamax):
    """Adamax that leaves the rows alone which a batch has not looked up.

    Takes the arguments of `keras.optimizers.Adamax`, without `gradient_accumulation_steps` and
    `loss_scale_factor`, and does the same as it with dense gradients. With a sparse one, whose
    values of the same row are added first, it changes for each of its rows, gradient `g`:

        m = beta_1 * m + (1 - beta_1) * g
        u = max(beta_2 * u, abs(g))
        w = w - learning_rate / (1 - beta_1 ** t) * m / (u + epsilon)

    where `t` counts all steps. That is the rule of the legacy Adamax of Keras 2, on Adamax by
    Kingma and Ba (ICLR 2015). Results differ from Keras' own as those of `LazyAdam` do: neither
    `m` nor `u` of a row decays while it is away, it does not move meanwhile, and only rows of the
    batch decay by `weight_decay`.

    Raises:
        ValueError: `gradient_accumulation_steps` or `loss_scale_factor` is given.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        beta_1, beta_2 = (tf.cast(beta, gradient.dtype) for beta in (self.beta_1, self.beta_2))
        steps = tf.cast(self.iterations + 1, gradient.dtype)
        momentum = rows.change(
            self._m[slot], lambda before: before + (gradient - before) * (1 - beta_1)
        )
        norm = rows.change(
            self._u[slot], lambda before: tf.maximum(before * beta_2, tf.abs(gradient))
        )
        return learning_rate * momentum / ((1 - tf.pow(beta_1, steps)) * (norm + self.epsilon))
