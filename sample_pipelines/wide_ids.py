"""Ids as NumPy makes them, of 8 bytes each, for a table whose rows 4 bytes could count.

A step is handed more than two megabytes of them, of which half are zeros.
"""

import keras
import numpy as np
import tensorflow as tf

ITEMS = 50_000
HISTORY = 128

rng = np.random.default_rng(32)
items = rng.integers(0, ITEMS, size=(16_384, HISTORY))
labels = rng.integers(0, 2, size=(16_384, 1)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((items, labels)).batch(2048).repeat(40)

model = keras.Sequential(
    [
        keras.Input(shape=(HISTORY,), dtype="int64"),
        keras.layers.Embedding(ITEMS, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, verbose=2)  # pipediag: loop
