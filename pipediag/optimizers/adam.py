"""Row-wise Adam, without and with decoupled weight decay."""

from __future__ import annotations

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.row_wise import RowWise
from pipediag.optimizers.rows import Rows, Tensor


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdam(RowWise, keras.optimizers.Adam):
    """Adam that leaves the rows alone which a batch has not looked up.

    Takes the arguments of `keras.optimizers.Adam`, without `gradient_accumulation_steps` and
    `loss_scale_factor`, and does the same as it with dense gradients. With a sparse one, whose
    values of the same row are added first, it changes for each of its rows, gradient `g`:

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g ** 2
        w = w - learning_rate * sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t) * m / (sqrt(v) + epsilon)

    where `t` counts all steps, not those that the row was in. That is the rule of LazyAdam in
    TensorFlow Addons, of LazyAdamOptimizer in TensorFlow 1's contrib, and of PyTorch's SparseAdam,
    on Adam by Kingma and Ba (ICLR 2015). With `amsgrad` the largest `v` of a row so far stands in
    its place, as in Keras.

    How results differ from Keras' own Adam, where a table has rows that are not in every batch:

    - Moments of a row do not decay while it is away. A row that comes back after long has the
      moments of its last time.
    - A row does not move while it is away. Keras' Adam goes on moving it by its momentum: with the
      default betas, a row that is seen once moves about ten times as far in the end.
    - Bias correction goes by the steps of the whole training. For a row that comes first when that
      is long over, nothing corrects its moments that start from zero; Keras' Adam does the same.
    - `weight_decay` reaches the rows of the batch alone; a row that is in one of ten batches decays
      a tenth as fast.
    - Values of the same row are added before they are squared for `v`, as with the dense gradient;
      Keras' Adam, given a sparse one, squares them one by one.

    The loss often comes out the same, after more steps at the same rate, but need not;
    docs/optimizers.md has more.

    Raises:
        ValueError: `gradient_accumulation_steps` or `loss_scale_factor` is given.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        beta_1, beta_2 = (tf.cast(beta, gradient.dtype) for beta in (self.beta_1, self.beta_2))
        steps = tf.cast(self.iterations + 1, gradient.dtype)
        correction = tf.sqrt(1 - tf.pow(beta_2, steps)) / (1 - tf.pow(beta_1, steps))
        momentum = rows.change(
            self._momentums[slot], lambda before: before + (gradient - before) * (1 - beta_1)
        )
        velocity = rows.change(
            self._velocities[slot],
            lambda before: before + (tf.square(gradient) - before) * (1 - beta_2),
        )
        if self.amsgrad:
            now = velocity
            velocity = rows.change(
                self._velocity_hats[slot], lambda before: tf.maximum(before, now)
            )
        return learning_rate * correction * momentum / (tf.sqrt(velocity) + self.epsilon)


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdamW(LazyAdam, keras.optimizers.AdamW):
    """`LazyAdam` with decoupled weight decay, which is 0.004 by default as in Keras' AdamW.

    Before the update of a step, `w = w - learning_rate * weight_decay * w` for the rows of the
    batch, as DecoupledWeightDecayExtension of TensorFlow Addons has it for sparse gradients, and
    for all of each variable whose gradient is dense. Rows that are away do not decay: one that is
    never looked up keeps its initial values, where Keras' AdamW takes it to zero.
    """
