"""A table that is too small for its vocabulary, in a step that XLA compiles.

XLA raises no error on a CPU: it takes the last row for every id past the end.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
LENGTH = 20

rng = np.random.default_rng(72)
words = rng.integers(1, VOCABULARY + 500, size=(32_000, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(32_000, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 32),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", jit_compile=True)
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
