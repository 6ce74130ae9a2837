"""Validation pictures are decoded again in every epoch; the training set is ready in memory."""

import keras
import numpy as np
import tensorflow as tf

EPOCHS = 12

rng = np.random.default_rng(211)
coarse = rng.integers(0, 255, size=(20, 32, 32, 3)).astype(np.uint8)
jpegs = [tf.io.encode_jpeg(np.kron(one, np.ones((16, 16, 1), np.uint8))).numpy() for one in coarse]
pictures = [jpegs[index % 20] for index in range(800)]
labels = np.arange(800) % 20 % 5


def thumbnail(picture, label):
    image = tf.image.resize(tf.io.decode_jpeg(picture, channels=3), [32, 32], antialias=True)
    return image / 255.0, label


ready = rng.random((2000, 32, 32, 3), dtype=np.float32)
training = tf.data.Dataset.from_tensor_slices((ready, np.arange(2000) % 5)).batch(20)
validation = tf.data.Dataset.from_tensor_slices((pictures, labels))
validation = validation.map(thumbnail).batch(20)  # pipediag: culprit

layers = [keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(5)]
model = keras.Sequential([keras.Input((32, 32, 3)), *layers])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
fit = {"epochs": EPOCHS, "validation_data": validation, "verbose": 2}
model.fit(training, **fit)  # pipediag: loop
