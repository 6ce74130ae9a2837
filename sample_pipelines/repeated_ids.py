"""Ids by Zipf's law: of the 25,600 that a step looks up, a tenth are different.

A vector is gathered for each of them all the same, and each gives back a gradient of its own.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 10_000
LENGTH = 100

rng = np.random.default_rng(31)
words = np.minimum(rng.zipf(1.3, size=(12_800, LENGTH)), VOCABULARY - 1).astype("int32")
labels = rng.integers(0, 2, size=(12_800, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(256)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 128),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=80, verbose=2)  # pipediag: loop
