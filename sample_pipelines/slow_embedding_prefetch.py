"""The small embedding classifier with the usual cure: a larger batch and `prefetch(AUTOTUNE)`.

It is faster per example than the batch of 32, because the batch is larger. The prefetch
changes nothing: TensorFlow appends one to a pipeline that ends in `batch`.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 1000
LENGTH = 20
EXAMPLES = 10_000

rng = np.random.default_rng(5)
words = rng.integers(0, VOCABULARY, size=(EXAMPLES, LENGTH))
labels = rng.integers(0, 2, size=(EXAMPLES, 1))

dataset = tf.data.Dataset.from_tensor_slices((words, labels))
dataset = dataset.shuffle(EXAMPLES)
dataset = dataset.batch(128)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int64"),
        keras.layers.Embedding(VOCABULARY, 100),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=40, verbose=2)  # pipediag: loop
