"""Code of a Keras model, or of its optimizer, that is to be written by hand."""

from __future__ import annotations

from pipediag.session.loops import KerasUse, Softmax
from pipediag.vocabulary import ROW_WISE_OPTIMIZERS

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
class SgdForTables({optimizer}):{scaled}
    def update_step(self, gradient, variable, learning_rate):
        if "embeddings" not in variable.name:
            return super().update_step(gradient, variable, learning_rate)
        rate = keras.ops.cast(0.1, variable.dtype)  # to be found anew
        self.assign_sub(variable, keras.ops.multiply(gradient, rate))

optimizer = SgdForTables(...)  # with its arguments{but_for}
{decay}model.compile(optimizer, ...{unscaled})  # slots of the tables stay allocated"""
_NO_DECAY = 'optimizer.exclude_from_weight_decay(var_names=["embeddings"])\n'
_OVER_TABLES = ("use_ema", "global_clipnorm", "gradient_accumulation_steps")
"""Arguments that let any optimizer pass over whole tables, however it updates them."""
_DECAYS = "AdamW"
"""Without being told to."""
_SCALED = "LossScaleOptimizer"
_OF_KERAS = frozenset(
    {
        "Adadelta",
        "Adafactor",
        "Adagrad",
        "Adam",
        "AdamW",
        "Adamax",
        "Ftrl",
        "Lamb",
        "Lion",
        "Muon",
        "Nadam",
        "RMSprop",
        "SGD",
        "ScheduleFreeAdamW",
    }
)
"""The classes in `keras.optimizers` of Keras 3.15."""


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


def sgd_for_tables(keras: KerasUse | None) -> list[str]:
    """An optimizer in the place of that with which a model of Keras is compiled."""
    own = keras.optimizer if keras else None
    settings = keras.optimizer_settings if keras else {}
    left_out = ", ".join(f"`{name}`" for name in _OVER_TABLES if name in settings)
    scaled = own == _SCALED
    code = _SGD_FOR_TABLES.format(
        # What scales the loss is around another one, whose name is not known.
        optimizer=_class("Adam" if own is None or scaled else own),
        scaled="  # or the one whose loss was scaled" if scaled else "",
        but_for=f", but for {left_out}, which the trial kept for all but the tables"
        if left_out
        else "",
        decay=_NO_DECAY if own == _DECAYS or "weight_decay" in settings else "",
        unscaled=", auto_scale_loss=False" if scaled else "",
    )
    return code.splitlines()


def _class(name: str) -> str:
    """What to derive from it by: Keras has it, or pipediag, or else the script."""
    if name in _OF_KERAS:
        return f"keras.optimizers.{name}"
    return f"pipediag.optimizers.{name}" if name in ROW_WISE_OPTIMIZERS.values() else name
