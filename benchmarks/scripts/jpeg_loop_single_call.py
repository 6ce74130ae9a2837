"""JPEG images decoded by one call at a time, in front of a loop of one's own."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(106)
images = rng.integers(0, 255, size=(256, 12, 12, 3), dtype=np.uint8).repeat(16, 1).repeat(16, 2)
files = [tf.io.encode_jpeg(image).numpy() for image in images]
labels = rng.integers(0, 10, size=256)


def decode(file, label):
    image = tf.image.convert_image_dtype(tf.io.decode_jpeg(file, channels=3), tf.float32)
    return tf.ensure_shape(image[::12, ::12], [16, 16, 3]), label


dataset = tf.data.Dataset.from_tensor_slices((files, labels))
dataset = dataset.shuffle(256)
dataset = dataset.map(decode, num_parallel_calls=1)  # pipediag: culprit
dataset = dataset.batch(32)
weights = tf.Variable(tf.zeros([768, 10]))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = tf.reshape(x, [-1, 768]) @ weights
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))


for _ in range(1000):
    for x, y in dataset:  # pipediag: loop
        train_step(x, y)
