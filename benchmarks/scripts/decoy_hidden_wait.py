"""Decoy: a serial `map` that waits, all of it hidden behind a network that takes longer."""

import time

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(120)
store = rng.standard_normal((4096, 64), dtype=np.float32)


def fetch(keys):
    time.sleep(0.004)
    return store[keys]


def lookup(keys):
    rows = tf.ensure_shape(tf.numpy_function(fetch, [keys], tf.float32), [256, 64])
    return rows, rows[:, :1]


dataset = tf.data.Dataset.range(4096).shuffle(4096).repeat()
dataset = dataset.batch(256, drop_remainder=True)
dataset = dataset.map(lookup)

dense = [keras.layers.Dense(1536, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, steps_per_epoch=100, epochs=1000, verbose=2)  # pipediag: loop
