"""Documents fetched sixteen at a time, of which one in fifty takes fifty times as long.

Results come out in the order of the calls, so that all that was fetched meanwhile waits for the
slow one. Where the order is free, `options.deterministic = False` lets the others pass.
"""

import time

import keras
import numpy as np
import tensorflow as tf

DOCUMENTS, LONGEST, WORDS = 4_000, 32, 5_000

rng = np.random.default_rng(94)
store = rng.integers(1, WORDS, size=(DOCUMENTS, LONGEST), dtype=np.int32)
lengths = rng.integers(LONGEST - 8, LONGEST + 1, size=DOCUMENTS)
waits = np.where(rng.random(DOCUMENTS) < 0.02, 0.1, 0.002)


def fetch(number):
    time.sleep(waits[number])
    return store[number, : lengths[number]]


def document(number):
    words = tf.ensure_shape(tf.numpy_function(fetch, [number], tf.int32), [None])
    return words, tf.cast(number % 2, tf.float32)


dataset = tf.data.Dataset.range(DOCUMENTS).shuffle(DOCUMENTS)
dataset = dataset.map(document, num_parallel_calls=16)  # pipediag: culprit
dataset = dataset.padded_batch(32)
options = tf.data.Options()
options.threading.private_threadpool_size = 16
dataset = dataset.with_options(options)

model = keras.Sequential(
    [
        keras.Input(shape=(None,), dtype="int32"),
        keras.layers.Embedding(WORDS, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
