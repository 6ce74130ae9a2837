"""Keras' own checkpoint keeps the whole model, with optimizer slots, after each short epoch."""

import tempfile

import keras
import numpy as np

WIDTH, EPOCHS = 1600, 60

rng = np.random.default_rng(212)
features = rng.standard_normal((256, WIDTH), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")

dense = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(3)]
model = keras.Sequential([keras.Input((WIDTH,)), *dense, keras.layers.Dense(1, "sigmoid")])
model.compile(optimizer="adam", loss="binary_crossentropy")
with tempfile.TemporaryDirectory() as folder:
    checkpoint = keras.callbacks.ModelCheckpoint(f"{folder}/last.keras")
    fit = {"epochs": EPOCHS, "batch_size": 64, "callbacks": [checkpoint], "verbose": 2}
    model.fit(features, labels, **fit)  # pipediag: loop
