"""Code of a Keras model, or of its optimizer, that is to be written by hand."""

from __future__ import annotations

from pipediag.session.loops import Softmax

_SAMPLED = """\
class SampledSoftmax(keras.Model):  # for labels as {labels}; without metrics, weights and masks
    def __init__(self, vectors, classes, drawn):
        super().__init__()
        self.vectors, self.classes, self.drawn = vectors, classes, drawn
        shape = (classes, vectors.output_shape[-1])
        self.rows = self.add_weight(shape=shape, name="rows")
        self.biases = self.add_weight(shape=(classes,), initializer="zeros", name="biases")

    def call(self, inputs, training=None):
        vectors = self.vectors(inputs, training=training)
        if training:
            return vectors
        return tf.tensordot(vectors, self.rows.value, [[-1], [1]]) + self.biases.value

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        given = tf.reshape(y_pred, (-1, y_pred.shape[-1]))
        labels = tf.cast(tf.reshape({ids}, (-1,)), "int64")
        if not training:  # logits of all classes
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, given)
        else:
            rows, biases = self.rows.value, self.biases.value
            losses = tf.nn.sampled_softmax_loss(
                rows, biases, labels[:, None], given, self.drawn, self.classes
            )
        return tf.reduce_mean(losses) + sum(self.losses)

# `vectors` is your model without its last layer.
model = SampledSoftmax(vectors, {classes}, {drawn})
model.compile(optimizer=...)  # without a loss"""

_SGD_FOR_TABLES = """\
class SgdForTables(keras.optimizers.{optimizer}):
    def update_step(self, gradient, variable, learning_rate):
        if "embeddings" not in variable.name:
            return super().update_step(gradient, variable, learning_rate)
        rate = keras.ops.cast(0.1, variable.dtype)  # to be found anew
        self.assign_sub(variable, keras.ops.multiply(gradient, rate))

model.compile(SgdForTables(...), ...)  # with the arguments that it had"""
_SCALED = "LossScaleOptimizer"


def sampled_softmax(softmax: Softmax, drawn: int) -> list[str]:
    """A model in the place of one that ends in that softmax; docs/embeddings.md explains it."""
    one_hot = softmax.labels == "dense"
    code = _SAMPLED.format(
        labels="one-hot rows" if one_hot else "integers",
        ids="tf.argmax(y, -1)" if one_hot else "y",
        classes=softmax.classes,
        drawn=drawn,
    )
    return code.splitlines()


def sgd_for_tables(optimizer: str | None) -> list[str]:
    """An optimizer in the place of Keras' of that name."""
    # What scales the loss is around another one, whose name is not known.
    named = optimizer if optimizer not in (None, _SCALED) else "Adam"
    return _SGD_FOR_TABLES.format(optimizer=named).splitlines()
