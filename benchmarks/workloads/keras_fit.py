"""Keras `fit` on a dataset, a step of about 2 ms: `keras_fit.py STAMPS STEPS`."""

import sys

import keras
import numpy as np
import tensorflow as tf
from step_stamps import step_stamps

path, steps = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(7)
features = rng.normal(size=(8192, 64)).astype(np.float32)
labels = rng.integers(0, 10, size=8192)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(8192).batch(512).repeat()
model = keras.Sequential(
    [
        keras.Input(shape=(64,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))


class Stamping(keras.callbacks.Callback):
    """At the beginning of a batch: a hook at its end would make Keras fetch the logs each time."""

    def on_train_batch_begin(self, batch, logs=None):
        stamp()


with step_stamps(path) as stamp:
    model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0, callbacks=[Stamping()])
