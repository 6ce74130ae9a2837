"""A model that begins with a dense layer on one-hot rows of 4,000 words, which is a table of them.

The dense layer multiplies all of its weights by each row, to read one of them.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, LENGTH, SENTENCES = 4_000, 24, 16_000

rng = np.random.default_rng(82)
ids = rng.integers(0, WORDS, (SENTENCES, LENGTH)).astype("int32")
labels = rng.integers(0, 2, SENTENCES).astype("float32")


def as_rows(words, label):
    return tf.one_hot(words, WORDS), label


dataset = (
    tf.data.Dataset.from_tensor_slices((ids, labels))
    .shuffle(SENTENCES)
    .batch(64)
    .map(as_rows, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: rows
    .prefetch(tf.data.AUTOTUNE)
)
model = keras.Sequential(
    [
        keras.Input((LENGTH, WORDS)),
        keras.layers.Dense(64, use_bias=False),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.Adam(1e-3), keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(dataset, epochs=4, verbose=2)  # pipediag: loop
