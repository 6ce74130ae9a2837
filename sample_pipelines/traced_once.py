"""A learning rate that changes each step and is passed as a tensor: near miss of retracing.

The function is traced once. The matrix products are the work.
"""

import numpy as np
import tensorflow as tf

FEATURES = 512

rng = np.random.default_rng(43)
features = rng.standard_normal((32_000, FEATURES), dtype=np.float32)
targets = features @ rng.standard_normal((FEATURES, 1), dtype=np.float32)

dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(4000).batch(128)
hidden = tf.Variable(tf.random.stateless_normal([FEATURES, 1024], seed=[43, 1]) * 0.04)
middle = tf.Variable(tf.random.stateless_normal([1024, 512], seed=[43, 2]) * 0.03)
output = tf.Variable(tf.random.stateless_normal([512, 1], seed=[43, 3]) * 0.04)
weights = [hidden, middle, output]


@tf.function
def train_step(x, y, rate):
    with tf.GradientTape() as tape:
        prediction = tf.nn.relu(tf.nn.relu(x @ hidden) @ middle) @ output
        loss = tf.reduce_mean(tf.square(prediction - y))
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(rate * gradient)
    return loss


step = 0
for epoch in range(8):
    for x, y in dataset:  # pipediag: loop
        rate = tf.constant(0.002 / (1.0 + step / 200))
        loss = train_step(x, y, rate)
        step += 1
    print(f"epoch {epoch}: loss {float(loss):.4f}")
