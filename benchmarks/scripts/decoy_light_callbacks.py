"""Decoy: four callbacks after each epoch, a checkpoint among them, that are done in a moment."""

import tempfile

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(214)
features = rng.standard_normal((6400, 64), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
dataset = dataset.shuffle(6400).batch(128).prefetch(tf.data.AUTOTUNE)

dense = [keras.layers.Dense(768, activation="relu") for _ in range(3)]
model = keras.Sequential([keras.Input((64,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
with tempfile.TemporaryDirectory() as folder:
    callbacks = [
        keras.callbacks.CSVLogger(f"{folder}/log.csv"),
        keras.callbacks.ReduceLROnPlateau(monitor="loss"),
        keras.callbacks.TerminateOnNaN(),
        keras.callbacks.ModelCheckpoint(f"{folder}/last.weights.h5", save_weights_only=True),
    ]
    model.fit(dataset, epochs=25, callbacks=callbacks, verbose=2)  # pipediag: loop
