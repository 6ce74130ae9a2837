"""A table that is trained for an epoch and then frozen, under the optimizer that it began with.

Keras' Adam made its two moments of the table when it was built, and keeps them.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 60_000
LENGTH = 20

rng = np.random.default_rng(34)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)

table = keras.layers.Embedding(VOCABULARY, 64)
model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        table,
        keras.layers.Conv1D(32, 3, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
optimizer = keras.optimizers.Adam()
model.compile(optimizer=optimizer, loss="binary_crossentropy")
model.fit(dataset.take(10), verbose=2)

table.trainable = False
model.compile(optimizer=optimizer, loss="binary_crossentropy")
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
