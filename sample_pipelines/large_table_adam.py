"""A large Embedding trained with Adam, which updates every row of the table at every step.

A batch touches a few thousand of the 200,000 rows, but Adam's moments decay for all of them.
The step grows with the table and not with the ids it looks up.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 200_000
LENGTH = 20

rng = np.random.default_rng(65)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 64),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=5, verbose=2)  # pipediag: loop
