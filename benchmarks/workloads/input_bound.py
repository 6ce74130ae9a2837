"""A loop that waits for its input most of the step: `input_bound.py STAMPS STEPS`."""

import sys

import tensorflow as tf
from step_stamps import step_stamps

path, steps = sys.argv[1], int(sys.argv[2])
weights = tf.Variable(tf.zeros((64, 1)))


def noisy_order(_: tf.Tensor) -> tf.Tensor:
    # Random, hence stateful: tf.data keeps the map serial.
    return tf.sort(tf.random.uniform((60_000,)))[:4096]


dataset = tf.data.Dataset.range(1_000_000).map(noisy_order).batch(1).prefetch(2)


@tf.function
def train_step(batch: tf.Tensor) -> None:
    x = tf.reshape(batch, (64, 64))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ weights - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))


with step_stamps(path) as stamp:
    for batch in dataset.take(steps):
        stamp()
        train_step(batch)
