"""Keras optimizers that pass over embedding tables less often than Keras' own.

An embedding's gradient is sparse: it names the rows of the batch. Keras' own Adam makes it dense
and passes over the whole table and both of its moments about ten times in every step. `FusedAdam`
does the same in three or four passes. The lazy optimizers, known in the field as lazy or row-wise,
read, change and write the batch's rows alone. All do with every dense gradient exactly what Keras'
own do.

For Keras 3 on TensorFlow. Each takes the arguments of Keras' optimizer of that name, but the lazy
ones refuse `gradient_accumulation_steps` and `loss_scale_factor` with a ValueError. With a sparse
gradient, whose values of the same row are added first, a lazy one changes each of its rows,
gradient `g`, by the rule in its docstring; `t` counts all steps, not those that the row was in, and
`weight_decay` reaches the rows of the batch alone. docs/embeddings.md says when the other results
matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def _keras_3_on_tensorflow() -> tuple[Any, Any]:
    """Return both modules. Raises ImportError where Keras is older, or has another backend."""
    import keras

    needed = "pipediag.optimizers needs Keras 3 on TensorFlow"
    if int(keras.__version__.partition(".")[0]) < 3:
        raise ImportError(
            f"{needed}, and Keras {keras.__version__} is installed. Update to TensorFlow 2.16 or "
            "newer, or use the LazyAdam of TensorFlow Addons."
        )
    if (backend := keras.backend.backend()) != "tensorflow":
        raise ImportError(
            f"{needed}, and Keras runs on {backend}. Set KERAS_BACKEND=tensorflow, or use the "
            "optimizers of Keras: gradients of embeddings are dense there."
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
    """Rows that a batch has looked up, each once, of a table and of its slots."""

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
        sparse = clips and any(map(is_sparse, grads))
        if sparse:
            # The norm of a sum is not that of its terms.
            grads = [sum_duplicates(grad) if is_sparse(grad) else grad for grad in grads]
        if sparse and self.global_clipnorm:
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


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdam(RowWise, keras.optimizers.Adam):
    """Adam that changes only the rows that a batch looks up.

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g ** 2
        w = w - learning_rate * sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t) * m / (sqrt(v) + epsilon)

    That is the rule of LazyAdam in TensorFlow Addons and of PyTorch's SparseAdam. With `amsgrad`
    the largest `v` of a row so far stands in its place, as in Keras.

    While a row is away its moments do not decay and it does not move; Keras' Adam goes on moving it
    by its momentum, with the default betas about ten times as far in the end.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        beta_1, beta_2 = (tf.cast(beta, gradient.dtype) for beta in (self.beta_1, self.beta_2))
        steps = tf.cast(self.iterations + 1, gradient.dtype)
        correction = tf.sqrt(1 - tf.pow(beta_2, steps)) / (1 - tf.pow(beta_1, steps))
        momentum = rows.change(
            self._momentums[slot], lambda before: before + (gradient - before) * (1 - beta_1)
        )
        squares = tf.square(gradient)
        velocity = rows.change(
            self._velocities[slot], lambda before: before + (squares - before) * (1 - beta_2)
        )
        if self.amsgrad:
            largest, now = self._velocity_hats[slot], velocity
            velocity = rows.change(largest, lambda before: tf.maximum(before, now))
        return learning_rate * correction * momentum / (tf.sqrt(velocity) + self.epsilon)


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdamW(LazyAdam, keras.optimizers.AdamW):
    """`LazyAdam` with decoupled weight decay, which is 0.004 by default as in Keras' AdamW.

    Before the update of a step, `w = w - learning_rate * weight_decay * w` for the rows of the
    batch, and for all of each variable whose gradient is dense.
    """


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdagrad(RowWise, keras.optimizers.Adagrad):
    """Adagrad that reads and writes only the rows that a batch looks up.

        accumulator = accumulator + g ** 2
        w = w - learning_rate * g / sqrt(accumulator + epsilon)

    Results are those of Keras' own Adagrad with the gradient made dense. Keras' own, given a sparse
    one, looks through the whole accumulator for zeros.
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

    That is the rule of TensorFlow's ResourceSparseApplyRMSProp, with epsilon as in Keras. While a
    row is away, `v`, `a` and `s` do not decay and it does not move, other than in Keras.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        rho = tf.cast(self.rho, gradient.dtype)
        squares, own = tf.square(gradient), self._velocities[slot]
        scale = rows.change(own, lambda before: rho * before + (1 - rho) * squares)
        if self.centered:
            own = self._average_gradients[slot]
            average = rows.change(own, lambda before: rho * before + (1 - rho) * gradient)
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

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        step = learning_rate * gradient
        if self.momentum == 0:
            return step
        momentum = tf.cast(self.momentum, gradient.dtype)
        moved = rows.change(self.momentums[slot], lambda before: momentum * before - step)
        return step - momentum * moved if self.nesterov else -moved


@keras.saving.register_keras_serializable(package="pipediag")
class FusedAdam(keras.optimizers.Adam):
    """Adam that updates a table and its moments in one kernel, with the results of Keras' own.

    Rows of the batch get their part of the moments first, divided by the betas, with which the
    kernel `ResourceApplyAdam` of TensorFlow multiplies all rows. As in Keras, values of one row are
    squared one by one. Before the kernel, TensorFlow copies each moment that rows were written to.
    What the kernel does not know, Keras' own does: `amsgrad`, and a beta of 0.
    """

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        if not is_sparse(gradient) or self.amsgrad or not self.beta_1 or not self.beta_2:
            super().update_step(gradient, variable, learning_rate)
            return
        table, slot = _native(variable), self._get_variable_index(variable)
        first, second = _native(self._momentums[slot]), _native(self._velocities[slot])
        rate, beta_1, beta_2, steps = (
            tf.cast(one, table.dtype)
            for one in (learning_rate, self.beta_1, self.beta_2, self.iterations + 1)
        )
        values = tf.cast(gradient.values, table.dtype)
        for moment, beta, added in (
            (first, beta_1, values),
            (second, beta_2, tf.square(values)),
        ):
            tf.raw_ops.ResourceScatterAdd(
                resource=moment.handle,
                indices=gradient.indices,
                updates=added * ((1 - beta) / beta),
            )
        tf.raw_ops.ResourceApplyAdam(
            var=table.handle,
            m=first.handle,
            v=second.handle,
            beta1_power=tf.pow(beta_1, steps),
            beta2_power=tf.pow(beta_2, steps),
            lr=rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=tf.cast(self.epsilon, table.dtype),
            grad=tf.zeros(table.shape, table.dtype),
        )


@keras.saving.register_keras_serializable(package="pipediag")
class FusedAdamW(FusedAdam, keras.optimizers.AdamW):
    """`FusedAdam` with decoupled weight decay, as in Keras' AdamW."""
