"""Keras on the JAX backend, fed by tf.data, whose serial `map` keeps it waiting.

Random operations make the `map` stateful, so tf.data runs one call at a time. Needs jax.
"""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
import tensorflow as tf

SIZE = 64

rng = np.random.default_rng(61)
images = rng.random((1600, SIZE, SIZE, 3), dtype=np.float32)
labels = rng.integers(0, 4, size=1600)


def augment(image, label):
    image = tf.image.random_crop(image, [48, 48, 3])
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.reduce_mean(image, axis=0), label


dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shuffle(1600)
dataset = dataset.map(augment)  # pipediag: culprit
dataset = dataset.batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(48, 3)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
