"""A loop of one's own over a dataset: `eager_loop.py STAMPS STEPS WIDTH BATCH`."""

import sys

import keras
import numpy as np
import tensorflow as tf
from step_stamps import step_stamps

path = sys.argv[1]
steps, width, batch = map(int, sys.argv[2:])
rng = np.random.default_rng(8)
features = rng.normal(size=(8192, 64)).astype(np.float32)
labels = rng.normal(size=(8192, 1)).astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(8192).batch(batch).repeat()
model = keras.Sequential(
    [
        keras.Input(shape=(64,)),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dense(width, activation="relu"),
        keras.layers.Dense(1),
    ]
)
optimizer = keras.optimizers.SGD(0.001)


@tf.function
def train_step(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


with step_stamps(path) as stamp:
    for x, y in dataset.take(steps):
        stamp()
        train_step(x, y)
