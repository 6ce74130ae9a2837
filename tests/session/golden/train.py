"""A small training whose input is slow: each element waits in Python, one after the other."""

import time

import keras
import numpy as np
import tensorflow as tf


def load(index):
    time.sleep(0.002)
    return np.full(8, index, np.float32)


def parse(index):
    features = tf.ensure_shape(tf.numpy_function(load, [index], tf.float32), (8,))
    return features, tf.reduce_sum(features, keepdims=True)


dataset = tf.data.Dataset.range(4096).map(parse).batch(8).prefetch(2)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=1, verbose=0)
