"""A `flat_map` whose own function fetches a shard from a store, one after the other.

There is no reader and no generator in it, and still nothing else is fetched while one is waited
for. Neither would an `interleave` call the function for several shards at once: it must be called
by those who read.
"""

import time

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32
ROWS = 64
SHARDS = 300

rng = np.random.default_rng(33)
table = rng.standard_normal((SHARDS, ROWS, FEATURES), dtype=np.float32)


def fetch(number):
    time.sleep(0.02)
    return table[number]


def rows_of(number):
    rows = tf.ensure_shape(tf.numpy_function(fetch, [number], tf.float32), (ROWS, FEATURES))
    return tf.data.Dataset.from_tensor_slices((rows, tf.cast(rows[:, :1] > 0, tf.float32)))


dataset = tf.data.Dataset.range(SHARDS)
dataset = dataset.flat_map(rows_of)  # pipediag: culprit
dataset = dataset.batch(ROWS)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
