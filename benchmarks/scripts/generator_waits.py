"""A generator that waits for each batch, as a remote store makes it: only more at once can help."""

import time

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(105)
table = rng.standard_normal((4096, 64), dtype=np.float32)


def batches():
    for start in range(0, len(table), 64):
        time.sleep(0.008)  # pipediag: culprit
        yield table[start : start + 64], table[start : start + 64, :1]  # pipediag: culprit


signature = (tf.TensorSpec([None, 64], tf.float32), tf.TensorSpec([None, 1], tf.float32))
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)  # pipediag: culprit

layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input(shape=(64,)), *layers])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
