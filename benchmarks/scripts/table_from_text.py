"""A table of numbers is read with `np.genfromtxt` in every run, which outlasts the training."""

import tempfile
from pathlib import Path

import keras
import numpy as np

ROWS, COLUMNS, TRAINED = 600_000, 33, 100_000

folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "measurements.csv")
values = np.random.default_rng(216).standard_normal((100, COLUMNS)).round(4).tolist()
path.write_text("".join(",".join(map(str, row)) + "\n" for row in values) * (ROWS // 100))

table = np.genfromtxt(path, delimiter=",", dtype=np.float32)  # pipediag: reading
features, targets = table[:TRAINED, 1:], table[:TRAINED, :1]

dense = [keras.layers.Dense(128, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input((COLUMNS - 1,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(features, targets, batch_size=256, epochs=3, verbose=2)  # pipediag: loop
