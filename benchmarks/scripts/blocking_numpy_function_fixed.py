"""`blocking_numpy_function.py` with sixteen calls in flight, on a pool of sixteen threads."""

import time

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(20)
store = rng.standard_normal((4000, 32), dtype=np.float32)


def fetch(key):
    time.sleep(0.0005)
    return store[key]


def lookup(key):
    features = tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [32])
    return features, tf.cast(key % 2, tf.float32)


options = tf.data.Options()
options.threading.private_threadpool_size = 16
dataset = tf.data.Dataset.range(4000).shuffle(4000)
dataset = dataset.map(lookup, num_parallel_calls=16)  # pipediag: culprit
dataset = dataset.batch(32).with_options(options)

layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
model = keras.Sequential([keras.Input(shape=(32,)), *layers])
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
