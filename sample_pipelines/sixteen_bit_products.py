"""Mixed precision for a large table with matrix products behind it, which 16 bits are made for.

The table is less than half of the model's bytes: the layers behind the vectors of a sentence have
the others, and nearly all of the step.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 60_000
LENGTH = 20

keras.mixed_precision.set_global_policy("mixed_bfloat16")
rng = np.random.default_rng(75)
words = rng.integers(0, VOCABULARY, size=(12_800, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(12_800, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 64),
        keras.layers.Flatten(),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid", dtype="float32"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=4, verbose=2)  # pipediag: loop
