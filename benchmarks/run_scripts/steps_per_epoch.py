"""A dataset that repeats, cut into epochs by `steps_per_epoch`."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(11)
images = rng.integers(0, 256, size=(2000, 40, 40, 3), dtype=np.uint8)
labels = rng.integers(0, 10, size=2000)


def augmented(image, label):
    image = tf.image.random_flip_left_right(tf.cast(image, tf.float32) / 255.0)
    return tf.image.random_crop(image, (32, 32, 3)), label


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().shuffle(500)
dataset = dataset.map(augmented, num_parallel_calls=tf.data.AUTOTUNE).batch(32)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input(shape=(32, 32, 3)),
        keras.layers.Conv2D(24, 3, strides=2, activation="relu"),
        keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
own = FitClock(clock.run)
model.fit(dataset, steps_per_epoch=100, epochs=20, verbose=0, callbacks=[own])
