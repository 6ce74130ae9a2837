"""The small embedding classifier with a `map` that seems to cost a millisecond an example.

The sleep is Python: it runs once, while TensorFlow traces the function, and never again. The
graph that runs for each example is empty, so neither the sleep nor AUTOTUNE changes a thing.
"""

import time

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 1000
LENGTH = 20
EXAMPLES = 10_000

rng = np.random.default_rng(6)
words = rng.integers(0, VOCABULARY, size=(EXAMPLES, LENGTH))
labels = rng.integers(0, 2, size=(EXAMPLES, 1))


def preprocess(tokens, label):
    time.sleep(0.001)
    return tokens, label


dataset = tf.data.Dataset.from_tensor_slices((words, labels))
dataset = dataset.map(preprocess, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: trace-only
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
