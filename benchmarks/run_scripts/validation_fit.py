"""`fit` with a validation after each epoch that costs as much as a third of the epoch."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(6)
images = rng.random(size=(8000, 28, 28, 1)).astype("float32")
labels = rng.integers(0, 10, size=8000)
train = tf.data.Dataset.from_tensor_slices((images[:3200], labels[:3200])).shuffle(3200).batch(64)
validation = tf.data.Dataset.from_tensor_slices((images[3200:], labels[3200:])).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(28, 28, 1)),
        keras.layers.Conv2D(24, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
own = FitClock(clock.run)
model.fit(train, validation_data=validation, epochs=10, verbose=2, callbacks=[own])
