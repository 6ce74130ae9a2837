"""The row-wise optimizers, each beside the published rule that it follows.

Each takes the arguments of Keras' optimizer of that name, and refuses `gradient_accumulation_steps`
and `loss_scale_factor` with a ValueError. With dense gradients it does the same as Keras' own. With
a sparse one, whose values of the same row are added first, it changes each of its rows, gradient
`g`, by the rule in its docstring; `t` counts all steps, not those that the row was in, and
`weight_decay` reaches the rows of the batch alone.
"""

from __future__ import annotations

from typing import Any

from pipediag.optimizers.rows import Rows, RowWise, Tensor, Variable, keras, tf


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdam(RowWise, keras.optimizers.Adam):
    """Adam that changes only the rows that a batch looks up.

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g ** 2
        w = w - learning_rate * sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t) * m / (sqrt(v) + epsilon)

    That is the rule of LazyAdam in TensorFlow Addons and of PyTorch's SparseAdam. With `amsgrad`
    the largest `v` of a row so far stands in its place, as in Keras.

    Results differ from Keras' own Adam where a table has rows that are not in every batch. While a
    row is away its moments do not decay and it does not move; Keras' Adam goes on moving it by its
    momentum, with the default betas about ten times as far in the end. Bias correction goes by the
    steps of the whole training, as in Keras. Values of the same row are added before they are
    squared for `v`; Keras' Adam, given a sparse gradient, squares them one by one.
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
    batch, and for all of each variable whose gradient is dense. A row that is never looked up keeps
    its initial values, where Keras' AdamW takes it to zero.
    """


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdamax(RowWise, keras.optimizers.Adamax):
    """Adamax that changes only the rows that a batch looks up.

        m = beta_1 * m + (1 - beta_1) * g
        u = max(beta_2 * u, abs(g))
        w = w - learning_rate / (1 - beta_1 ** t) * m / (u + epsilon)

    Results differ from Keras' own as those of `LazyAdam` do: neither `m` nor `u` of a row decays
    while it is away, and it does not move meanwhile.
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


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdagrad(RowWise, keras.optimizers.Adagrad):
    """Adagrad that reads and writes only the rows that a batch looks up.

        accumulator = accumulator + g ** 2
        w = w - learning_rate * g / sqrt(accumulator + epsilon)

    Results are those of Keras' own Adagrad with the gradient made dense. Keras' own writes rows,
    too, but looks through the whole accumulator for zeros; and where a row is named twice in a
    gradient it adds the squares of the parts, not the square of their sum.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        squares = rows.change(self._accumulators[slot], lambda before: before + tf.square(gradient))
        return learning_rate * gradient / tf.sqrt(squares + self.epsilon)


@keras.saving.register_keras_serializable(package="pipediag")
class LazyRMSprop(RowWise, keras.optimizers.RMSprop):
    """RMSprop that changes only the rows that a batch looks up.

        v = rho * v + (1 - rho) * g ** 2
        a = rho * a + (1 - rho) * g                                 where `centered`, else a = 0
        s = momentum * s + learning_rate * g / sqrt(v - a ** 2 + epsilon)
        w = w - s

    That is the rule of TensorFlow's ResourceSparseApplyRMSProp, with epsilon as in Keras. Results
    differ from Keras' own: `v`, `a` and `s` of a row do not decay while it is away, and it does not
    move. The first step of a row that comes back is not up to `1 / sqrt(1 - rho)` times as long.
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


@keras.saving.register_keras_serializable(package="pipediag")
class LazySGD(RowWise, keras.optimizers.SGD):
    """SGD whose momentum changes only the rows that a batch looks up.

        m = momentum * m - learning_rate * g
        w = w + m                                 or, with `nesterov`,
        w = w + momentum * m - learning_rate * g

    That is the rule of TensorFlow's ResourceSparseApplyKerasMomentum. Without momentum results are
    those of Keras' own SGD. With momentum Keras' own goes on moving a row that is away, in the end
    `1 / (1 - momentum)` times as far, and this one keeps its momentum for the next time.
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
