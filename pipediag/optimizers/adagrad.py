"""Row-wise Adagrad."""

from __future__ import annotations

from pipediag.optimizers.frameworks import keras, tf
from pipediag.optimizers.row_wise import RowWise
from pipediag.optimizers.rows import Rows, Tensor


@keras.saving.register_keras_serializable(package="pipediag")
class LazyAdagrad(RowWise, keras.optimizers.Adagrad):
    """Adagrad that reads and writes only the rows which a batch has looked up.

    Takes the arguments of `keras.optimizers.Adagrad`, without `gradient_accumulation_steps` and
    `loss_scale_factor`, and does the same as it with dense gradients. With a sparse one, whose
    values of the same row are added first, it changes for each of its rows, gradient `g`:

        accumulator = accumulator + g ** 2
        w = w - learning_rate * g / sqrt(accumulator + epsilon)

    (Duchi, Hazan and Singer, JMLR 12, 2011). A row without a gradient stays as it is in both, so
    results are those of Keras' own Adagrad with the gradient made dense. Keras' own writes rows,
    too, but looks through the whole accumulator for zeros; and where a row is named twice in a
    gradient it adds the squares of the parts, not the square of their sum. `weight_decay` reaches
    the rows of the batch alone.

    Raises:
        ValueError: `gradient_accumulation_steps` or `loss_scale_factor` is given.
    """

    def row_step(self, rows: Rows, gradient: Tensor, slot: int, learning_rate: Tensor) -> Tensor:
        squares = rows.change(self._accumulators[slot], lambda before: before + tf.square(gradient))
        return learning_rate * gradient / tf.sqrt(squares + self.epsilon)
