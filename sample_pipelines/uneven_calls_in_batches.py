"""Near miss: the same calls with a `batch` right behind, which TensorFlow fuses with the `map`.

Each call fills its own place of the batch, in whatever order they end: a slow one holds up none of
the others.
"""

import time

import keras
import numpy as np
import tensorflow as tf

DOCUMENTS, LONGEST, WORDS = 4_000, 32, 5_000

rng = np.random.default_rng(94)
store = rng.integers(1, WORDS, size=(DOCUMENTS, LONGEST), dtype=np.int32)
waits = np.where(rng.random(DOCUMENTS) < 0.02, 0.1, 0.002)


def fetch(number):
    time.sleep(waits[number])
    return store[number]


def document(number):
    words = tf.ensure_shape(tf.numpy_function(fetch, [number], tf.int32), [LONGEST])
    return words, tf.cast(number % 2, tf.float32)


dataset = tf.data.Dataset.range(DOCUMENTS).shuffle(DOCUMENTS)
dataset = dataset.map(document, num_parallel_calls=16)  # pipediag: culprit
dataset = dataset.batch(32)
options = tf.data.Options()
options.threading.private_threadpool_size = 16
dataset = dataset.with_options(options)

model = keras.Sequential(
    [
        keras.Input(shape=(LONGEST,), dtype="int32"),
        keras.layers.Embedding(WORDS, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
