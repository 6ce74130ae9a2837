"""Near miss: the same shards, of which the readers of an `interleave` fetch sixteen at a time."""

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
dataset = dataset.interleave(
    lambda number: tf.data.Dataset.from_tensors(number).flat_map(rows_of),
    cycle_length=16,
    num_parallel_calls=16,
)
dataset = dataset.batch(ROWS)
options = tf.data.Options()
options.threading.private_threadpool_size = 16
dataset = dataset.with_options(options)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
