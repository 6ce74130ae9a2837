"""A small embedding classifier on a plain pipeline: arrays, shuffle, batch of 32, `fit`.

People ask why this is slow and are told to add `prefetch`. TensorFlow has put one there
already; the time goes into the fixed cost of very many very small steps.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 1000
LENGTH = 20
EXAMPLES = 10_000

rng = np.random.default_rng(4)
words = rng.integers(0, VOCABULARY, size=(EXAMPLES, LENGTH))
labels = rng.integers(0, 2, size=(EXAMPLES, 1))

dataset = tf.data.Dataset.from_tensor_slices((words, labels))
dataset = dataset.shuffle(EXAMPLES)
dataset = dataset.batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int64"),
        keras.layers.Embedding(VOCABULARY, 100),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
