"""A generator that yields whole batches, and a network that takes longer than making one."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(104)
table = rng.standard_normal((25_600, 64), dtype=np.float32)


def batches():
    for _ in range(10_000):
        rows = table[rng.integers(0, len(table), size=256)]
        yield rows, rows[:, :1]


signature = (tf.TensorSpec([256, 64], tf.float32), tf.TensorSpec([256, 1], tf.float32))
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
