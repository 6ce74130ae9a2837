"""Six folds, each of which parses the whole table from its text again.

One model is built and compiled once, and gets its first weights back for each fold. The table
is the same for all folds, which differ only in the rows they take; parsing it takes longer than
training on it.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np

ROWS, FEATURES, FOLDS = 200_000, 16, 6

rng = np.random.default_rng(91)


def write_table(path):
    rows = [",".join(f"{value:.4f}" for value in row) for row in rng.normal(size=(500, FEATURES))]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{rows[number % 500]}\n" for number in range(ROWS))


def read_table(path):
    values = []
    with path.open(encoding="utf-8") as file:
        for line in file:  # pipediag: parsing
            values.append([float(value) for value in line.split(",")])  # pipediag: parsing
    return np.asarray(values, dtype=np.float32)  # pipediag: parsing


model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES - 1,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
first_weights = model.get_weights()

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "table.csv")
    write_table(path)
    for fold in range(FOLDS):
        table = read_table(path)
        kept = np.arange(ROWS) % FOLDS != fold
        model.set_weights(first_weights)
        model.fit(  # pipediag: loop
            table[kept, 1:], table[kept, 0], batch_size=2048, epochs=1, verbose=0
        )
        print(f"fold {fold}: {model.history.history['loss'][-1]:.3f}")
