"""A `tf.function` that takes the iterator and draws the batch itself.

Python never sees a batch. The random crops, made one at a time in a serial `map`, take most
of each step.
"""

import numpy as np
import tensorflow as tf

SIZE = 64

rng = np.random.default_rng(54)
images = rng.random((1600, SIZE, SIZE, 3), dtype=np.float32)
targets = rng.standard_normal((1600, 1), dtype=np.float32)


def crop(image, target):
    image = tf.image.random_crop(image, [32, 32, 3])
    image = tf.image.random_hue(image, 0.1)
    return tf.reduce_mean(tf.image.random_contrast(image, 0.5, 1.5), axis=[0]), target


dataset = tf.data.Dataset.from_tensor_slices((images, targets))
dataset = dataset.shuffle(1600).repeat()
dataset = dataset.map(crop)  # pipediag: culprit
dataset = dataset.batch(64)

weights = tf.Variable(tf.zeros([96, 1]))


@tf.function
def train_step(iterator):
    x, y = next(iterator)  # pipediag: loop
    x = tf.reshape(x, [-1, 96])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x @ weights - y))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


iterator = iter(dataset)  # pipediag: loop
for step in range(1500):
    loss = train_step(iterator)  # pipediag: loop
    if step % 100 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
