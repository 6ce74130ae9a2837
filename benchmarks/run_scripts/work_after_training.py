"""After a training: predictions for all rows, and results written as text and as a model."""

import tempfile
from pathlib import Path

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(17)
rows = rng.normal(size=(6400, 64)).astype("float32")
targets = rng.normal(size=(6400, 32)).astype("float32")
others = rng.normal(size=(64_000, 64)).astype("float32")

model = keras.Sequential(
    [
        keras.Input(shape=(64,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(32),
    ]
)
model.compile(optimizer="adam", loss="mse")
own = FitClock(clock.run)
model.fit(rows, targets, batch_size=64, epochs=6, verbose=0, callbacks=[own])
with clock.run.evaluation():
    predicted = model.predict(others, batch_size=64, verbose=0, callbacks=[own])
with tempfile.TemporaryDirectory() as folder:
    np.savetxt(Path(folder) / "predicted.csv", predicted, delimiter=",", fmt="%.5f")
    model.save(Path(folder) / "model.keras")
