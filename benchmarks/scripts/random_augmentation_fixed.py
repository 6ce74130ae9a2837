"""`random_augmentation.py` with the `map` told to run in parallel: input, but no longer serial."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(22)
images = rng.random((1600, 96, 96, 3), dtype=np.float32)
labels = rng.integers(0, 4, size=1600)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_crop(image, [80, 80, 3])
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    return tf.image.random_contrast(image, 0.8, 1.2), label


dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shuffle(1600)
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.batch(32)

layers = [keras.layers.AveragePooling2D(8), keras.layers.Flatten(), keras.layers.Dense(4)]
model = keras.Sequential([keras.Input(shape=(80, 80, 3)), *layers])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="sgd", loss=loss)
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
