"""Cross-validation: a model is built and fitted in each of eight folds."""

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

FOLDS = 8
rng = np.random.default_rng(3)
rows = rng.normal(size=(4000, 40)).astype("float32")
targets = rng.normal(size=(4000, 1)).astype("float32")
fold_of = rng.integers(0, FOLDS, size=len(rows))


def build_model():
    model = keras.Sequential([keras.Input(shape=(40,))])
    for _ in range(2):
        model.add(keras.layers.Dense(64))
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.Activation("relu"))
    model.add(keras.layers.Dense(1))
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return model


scores = []
for fold in range(FOLDS):
    keras.utils.set_random_seed(fold)
    model = build_model()
    train, held_out = fold_of != fold, fold_of == fold
    own = FitClock(clock.run)
    model.fit(rows[train], targets[train], epochs=3, batch_size=64, verbose=0, callbacks=[own])
    with clock.run.evaluation():
        scores.append(model.evaluate(rows[held_out], targets[held_out], verbose=0, callbacks=[own]))
print(np.mean(scores, axis=0))
