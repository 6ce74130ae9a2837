"""A `tf.function` that is given the learning rate as a Python float, another one each step.

Each new float is a new signature, so the function is traced again at every step. Passing a
tensor, or a variable, would end that.
"""

import numpy as np
import tensorflow as tf

FEATURES = 32

rng = np.random.default_rng(42)
features = rng.standard_normal((64_000, FEATURES), dtype=np.float32)
targets = features @ rng.standard_normal((FEATURES, 1), dtype=np.float32)

dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(64_000).batch(64)
weights = tf.Variable(tf.zeros([FEATURES, 1]))


@tf.function
def train_step(x, y, rate):  # pipediag: retraced
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ weights - y))
    weights.assign_sub(rate * tape.gradient(loss, weights))
    return loss


for step, (x, y) in enumerate(dataset):  # pipediag: loop
    rate = 0.05 / (1.0 + step / 200)
    loss = train_step(x, y, rate)  # pipediag: retraced
print(f"loss {float(loss):.4f}")
