"""Decoy: the serial waiting `map` feeds the validation only; the network is the work."""

import time

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(123)
features = rng.standard_normal((4096, 64), dtype=np.float32)


def fetch(row):
    time.sleep(0.001)
    return row


def slow(x, y):
    return tf.ensure_shape(tf.numpy_function(fetch, [x], tf.float32), [64]), y


dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1])).shuffle(4096)
validation = dataset.take(256).map(slow).batch(64)
dataset = dataset.batch(256)

dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, validation_data=validation, epochs=200, verbose=2)  # pipediag: loop
