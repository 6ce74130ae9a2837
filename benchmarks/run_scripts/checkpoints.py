"""`ModelCheckpoint` writes the whole model, optimizer and all, after each epoch."""

import tempfile
from pathlib import Path

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

VOCABULARY = 60_000
rng = np.random.default_rng(14)
tokens = rng.integers(0, VOCABULARY, size=(1600, 30))
labels = rng.integers(0, 2, size=1600)

model = keras.Sequential(
    [
        keras.Input(shape=(30,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 96),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "epoch{epoch}.keras"
    checkpoint = keras.callbacks.ModelCheckpoint(str(path), monitor="loss")
    callbacks = [FitClock(clock.run), checkpoint]
    model.fit(tokens, labels, batch_size=64, epochs=10, verbose=0, callbacks=callbacks)
