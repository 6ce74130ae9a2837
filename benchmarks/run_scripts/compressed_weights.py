"""A callback saves the weights compressed by NumPy after each epoch."""

import tempfile
from pathlib import Path

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(4)
rows = rng.normal(size=(12_800, 256)).astype("float32")
labels = rng.integers(0, 10, size=12_800)


class SavesCompressed(keras.callbacks.Callback):
    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def on_epoch_end(self, epoch, logs=None):
        weights = {f"w{n}": value for n, value in enumerate(self.model.get_weights())}
        np.savez_compressed(self.folder / f"epoch{epoch}.npz", **weights)


model = keras.Sequential(
    [
        keras.Input(shape=(256,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="adam", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
with tempfile.TemporaryDirectory() as folder:
    callbacks = [FitClock(clock.run), SavesCompressed(folder)]
    model.fit(rows, labels, batch_size=128, epochs=9, verbose=0, callbacks=callbacks)
