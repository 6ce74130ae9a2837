"""Decoy: batches of eight for a tiny model that waits: a larger batch waits longer."""

import time

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(122)
store = rng.standard_normal((4000, 32), dtype=np.float32)


def fetch(key):
    time.sleep(0.001)
    return store[key]


def lookup(key):
    features = tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [32])
    return features, tf.cast(key % 2, tf.float32)


dataset = tf.data.Dataset.range(4000).shuffle(4000)
dataset = dataset.map(lookup)  # pipediag: culprit
dataset = dataset.batch(8)

layers = [keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
model = keras.Sequential([keras.Input(shape=(32,)), *layers])
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
