"""Word2Vec with sampled negatives; snapshot of the vectors after every epoch."""

import tempfile

import numpy as np
import tensorflow as tf

VOCAB, DIM, NEG, BATCH = 120_000, 64, 5, 512
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(21)
corpus = (rng.zipf(1.15, 90_000) % VOCAB).astype("int64")
centre, context = corpus[1:], corpus[:-1]


def negatives(c, o):
    n = tf.random.uniform((tf.shape(c)[0], NEG), 0, VOCAB, tf.int64)
    o = tf.concat([o[:, None], n], 1)
    y = tf.concat([tf.ones_like(c[:, None]), tf.zeros_like(n)], 1)
    return (c, o), tf.cast(y, tf.float32)


train = (
    tf.data.Dataset.from_tensor_slices((centre, context))
    .shuffle(90_000)
    .batch(BATCH, drop_remainder=True)
    .map(negatives, num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)


class Word2Vec(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.target = tf.keras.layers.Embedding(VOCAB, DIM, name="target")
        self.context = tf.keras.layers.Embedding(VOCAB, DIM, name="context")

    def call(self, pair):
        c, o = pair
        return tf.einsum("bd,bnd->bn", self.target(c), self.context(o))


class Snapshot(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        target, context = self.model.get_weights()
        np.savez_compressed(  # pipediag: culprit
            f"{folder.name}/vectors-{epoch % 2}.npz", target=target, context=context
        )


model = Word2Vec()
model.compile(tf.keras.optimizers.SGD(0.5), tf.keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(  # pipediag: loop
    train,
    epochs=6,
    verbose=2,
    callbacks=[Snapshot(), tf.keras.callbacks.CSVLogger(f"{folder.name}/w2v.csv")],
)
