"""A custom loop, `for x, y in dataset`, fed by a `map` that calls back into NumPy.

The loop calls a compiled step; the serial `numpy_function` in front of it takes longer.
"""

import numpy as np
import tensorflow as tf

SIZE = 4096
BINS = 64

rng = np.random.default_rng(52)
signals = rng.standard_normal((3200, SIZE), dtype=np.float32)
targets = rng.standard_normal((3200, 1), dtype=np.float32)


def histogram(signal):
    counts, _ = np.histogram(signal, bins=BINS, range=(-4.0, 4.0))
    return counts.astype(np.float32) / SIZE


def featurise(signal, target):
    counts = tf.numpy_function(histogram, [signal], tf.float32)
    return tf.ensure_shape(counts, [BINS]), target


dataset = tf.data.Dataset.from_tensor_slices((signals, targets))
dataset = dataset.map(featurise)  # pipediag: culprit
dataset = dataset.batch(64)

weights = tf.Variable(tf.zeros([BINS, 1]))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ weights - y))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


for epoch in range(20):
    for x, y in dataset:  # pipediag: loop
        loss = train_step(x, y)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
