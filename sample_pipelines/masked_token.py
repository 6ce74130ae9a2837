"""`mask_zero` on ids that begin with 0: the most frequent word is skipped as if it were padding."""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
LENGTH = 20

rng = np.random.default_rng(73)
words = np.minimum(rng.zipf(1.3, size=(32_000, LENGTH)) - 1, VOCABULARY - 1)
labels = rng.integers(0, 2, size=(32_000, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 32, mask_zero=True),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
