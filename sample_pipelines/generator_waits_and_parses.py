"""A generator that waits for a store for half of its time, and parses in Python for the other half.

Its parsing holds the interpreter lock, its waiting does not: of two such generators, each with a
part of the data, one can wait while the other parses.
"""

import time

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32
BATCH = 64
WAIT_S = 0.008

rng = np.random.default_rng(32)
table = rng.standard_normal((BATCH * 400, FEATURES), dtype=np.float32)


def parse(rows):
    """As much work on any machine: a loop in Python for so many CPU seconds."""
    until = time.thread_time() + WAIT_S
    while time.thread_time() < until:  # pipediag: culprit
        pass  # pipediag: culprit
    return rows, (rows[:, :1] > 0).astype("float32")


def batches():
    for start in range(0, len(table), BATCH):
        time.sleep(WAIT_S)  # pipediag: culprit
        yield parse(table[start : start + BATCH])


signature = (
    tf.TensorSpec(shape=(BATCH, FEATURES), dtype=tf.float32),
    tf.TensorSpec(shape=(BATCH, 1), dtype=tf.float32),
)
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)  # pipediag: culprit

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
