"""Several fits of one model, with `evaluate` and `predict` between them."""

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(10)
rows = rng.normal(size=(9600, 200)).astype("float32")
labels = rng.integers(0, 5, size=9600)
others = rng.normal(size=(19_200, 200)).astype("float32")
other_labels = rng.integers(0, 5, size=19_200)

model = keras.Sequential(
    [
        keras.Input(shape=(200,)),
        keras.layers.Dense(800, activation="relu"),
        keras.layers.Dense(400, activation="relu"),
        keras.layers.Dense(5, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
own = FitClock(clock.run)
for rate in (1e-3, 3e-4, 1e-4):
    model.optimizer.learning_rate = rate
    model.fit(rows, labels, batch_size=64, epochs=3, verbose=0, callbacks=[own])
    with clock.run.evaluation():
        loss, accuracy = model.evaluate(others, other_labels, verbose=0, callbacks=[own])
        guesses = model.predict(others, batch_size=64, verbose=0, callbacks=[own])
    confusion = np.zeros((5, 5), dtype=int)
    np.add.at(confusion, (other_labels, guesses.argmax(-1)), 1)
    print(f"{rate}: {loss:.3f} {accuracy:.3f}\n{confusion}")
