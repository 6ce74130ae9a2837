"""A shuffle of all elements behind a costly map, in a loop that the script writes itself."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.loops import LoopClock

clock.run.imported()

SOUNDS = 1600
rng = np.random.default_rng(2)
waves = rng.normal(size=(SOUNDS, 6000)).astype("float32")
labels = rng.integers(0, 10, size=SOUNDS)


def spectrogram(wave, label):
    spectrum = tf.abs(tf.signal.stft(wave, frame_length=255, frame_step=64))
    return tf.image.resize(spectrum[..., tf.newaxis], (32, 32)), label


dataset = tf.data.Dataset.from_tensor_slices((waves, labels))
dataset = dataset.map(spectrogram).shuffle(SOUNDS).batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(32, 32, 1)),
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(images, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


own = LoopClock(clock.run)
for _ in range(20):
    own.epoch_begins()
    for images, targets in dataset:
        own.batch_in_hand()
        train_step(images, targets)
        own.step_over()
    own.epoch_over()
own.over()
