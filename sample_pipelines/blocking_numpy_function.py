"""Features fetched for each example by a call that waits, in a `map` that TensorFlow keeps serial.

`numpy_function` is stateful, so tf.data runs one call at a time unless it is told otherwise,
and the waiting adds up. The processor is idle meanwhile; more calls in flight would help.
"""

import time

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32

rng = np.random.default_rng(20)
store = rng.standard_normal((4000, FEATURES), dtype=np.float32)


def fetch(key):
    time.sleep(0.0005)  # a feature store answers in half a millisecond
    return store[key]


def lookup(key):
    features = tf.ensure_shape(tf.numpy_function(fetch, [key], tf.float32), [FEATURES])
    return features, tf.cast(key % 2, tf.float32)


dataset = tf.data.Dataset.range(4000)
dataset = dataset.shuffle(4000)
dataset = dataset.map(lookup)  # pipediag: culprit
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
