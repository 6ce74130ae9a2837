"""Decoy: elements of uneven cost in order; the cores are full, so order costs nothing."""

import keras
import tensorflow as tf


def powers(number):
    matrix = tf.cast(number % 7, tf.float32) * tf.eye(128) + 0.01
    turns = tf.where(number % 4 == 0, 24, 4)
    for _ in tf.range(turns):
        matrix = tf.linalg.l2_normalize(matrix @ matrix + 0.1)
    return matrix[0], matrix[0, :1]


dataset = tf.data.Dataset.range(10_000_000)
dataset = dataset.map(  # pipediag: culprit
    powers, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
)
dataset = dataset.batch(16)

layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input(shape=(128,)), *layers])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, verbose=2)  # pipediag: loop
