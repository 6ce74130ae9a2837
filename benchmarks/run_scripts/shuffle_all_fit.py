"""A costly map before a shuffle of all elements, so that each epoch starts with the whole data."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.fits import FitClock

clock.run.imported()

SOUNDS = 2432
rng = np.random.default_rng(1)
waves = rng.normal(size=(SOUNDS, 6000)).astype("float32")
labels = rng.integers(0, 10, size=SOUNDS)


def spectrogram(wave, label):
    spectrum = tf.abs(tf.signal.stft(wave, frame_length=255, frame_step=64))
    return tf.image.resize(spectrum[..., tf.newaxis], (32, 32)), label


dataset = tf.data.Dataset.from_tensor_slices((waves, labels))
dataset = dataset.map(spectrogram).shuffle(SOUNDS).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(32, 32, 1)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=14, verbose=0, callbacks=[FitClock(clock.run)])
