"""A model compiled with `run_eagerly=True`, left over from debugging.

Every operation of the step is started from Python by itself. The arithmetic is a small part.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 500

rng = np.random.default_rng(41)
words = rng.integers(0, VOCABULARY, size=(12_800, 20), dtype=np.int32)
labels = rng.integers(0, 2, size=(12_800, 1))

dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(12_800).batch(64)
model = keras.Sequential(
    [
        keras.Input(shape=(20,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", run_eagerly=True)
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
