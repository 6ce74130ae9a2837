"""Near miss: rows of a CSV file, mapped and cached, for many epochs.

Only the first epoch reads the file and fills the cache; all the others read the cache, so that the
input limits nothing of what takes long.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

COLUMNS = [f"sensor_{index}" for index in range(12)]
ROWS, BATCH, EPOCHS = 24_000, 64, 12

rng = np.random.default_rng(76)


def write_rows(path):
    values = rng.standard_normal((ROWS, len(COLUMNS)))
    labels = (values[:, :3].sum(axis=1) > 0).astype(int)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*COLUMNS, "label"]) + "\n")
        for row, label in zip(values.tolist(), labels.tolist(), strict=True):
            file.write(",".join(f"{value:.4f}" for value in row) + f",{label}\n")


def to_features(columns, label):
    values = tf.stack([columns[name] for name in COLUMNS], axis=1)
    return (values - tf.reduce_mean(values, axis=0)) / 2.0, label


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "sensors.csv")
    write_rows(path)
    dataset = tf.data.experimental.make_csv_dataset(
        str(path), BATCH, label_name="label", num_epochs=1, shuffle=False
    )
    dataset = dataset.map(to_features, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.cache()
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input(shape=(len(COLUMNS),)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
