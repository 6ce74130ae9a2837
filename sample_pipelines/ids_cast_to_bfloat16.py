"""Mixed precision on a Sequential model without an integer Input: ids are cast to bfloat16.

Above 256 that type holds every second integer, then every fourth, and so on, so that different
words share a row of the table.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
LENGTH = 20

keras.mixed_precision.set_global_policy("mixed_bfloat16")
rng = np.random.default_rng(71)
words = rng.integers(1, VOCABULARY, size=(32_000, LENGTH))
labels = rng.integers(0, 2, size=(32_000, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(64)

model = keras.Sequential(
    [
        keras.layers.Embedding(VOCABULARY, 32),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid", dtype="float32"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
