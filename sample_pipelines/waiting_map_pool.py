"""Sixteen parallel calls that wait, held back by tf.data's pool of one thread for each core.

The calls sleep as a remote store would make them. A private pool of sixteen threads would let
them all wait at the same time.
"""

import time

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32

rng = np.random.default_rng(62)
store = rng.standard_normal((4000, FEATURES), dtype=np.float32)


def fetch(key):
    time.sleep(0.001)
    return store[key]


def lookup(key):
    features = tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [FEATURES])
    return features, tf.cast(key % 2, tf.float32)


dataset = tf.data.Dataset.range(4000)
dataset = dataset.shuffle(4000)
dataset = dataset.map(lookup, num_parallel_calls=16)  # pipediag: culprit
dataset = dataset.batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
