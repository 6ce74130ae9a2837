"""Rows of a CSV file, mapped and cached: the first epoch reads them, all others do not."""

import tempfile
import time
from pathlib import Path

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.fits import FitClock

clock.run.imported()

ROWS, COLUMNS = 12_800, [f"feature{number}" for number in range(12)]
rng = np.random.default_rng(7)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "train.csv"
table = rng.normal(size=(ROWS, len(COLUMNS)))
table = np.column_stack([table, rng.integers(0, 2, size=ROWS)])
np.savetxt(path, table, delimiter=",", header=",".join([*COLUMNS, "target"]), comments="", fmt="%g")

dataset = tf.data.experimental.make_csv_dataset(
    str(path), batch_size=64, label_name="target", num_epochs=1, column_defaults=[0.0] * 13
)


def normalized(features, target):
    columns = tf.stack([features[name] for name in COLUMNS], axis=-1)
    return (columns - tf.reduce_mean(columns, 0)) / (tf.math.reduce_std(columns, 0) + 1e-6), target


dataset = dataset.map(normalized)
began = time.monotonic()
for features, target in dataset.take(1):
    print(features[:2], target[:2])
first_wait = time.monotonic() - began
dataset = dataset.cache()

model = keras.Sequential(
    [
        keras.Input(shape=(len(COLUMNS),)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=10, verbose=0, callbacks=[FitClock(clock.run, first_wait)])
folder.cleanup()
