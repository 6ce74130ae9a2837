"""Lines of a CSV file decoded one at a time before they are batched."""

import tempfile

import keras
import numpy as np
import tensorflow as tf

COLUMNS = 12


def decode(line):
    fields = tf.io.decode_csv(line, [0.0] * COLUMNS)
    return tf.stack(fields[1:]), fields[0]


with tempfile.TemporaryDirectory() as folder:
    table = np.random.default_rng(102).standard_normal((40_000, COLUMNS))
    np.savetxt(f"{folder}/train.csv", table, delimiter=",", fmt="%.4f")
    dataset = tf.data.TextLineDataset(f"{folder}/train.csv")
    dataset = dataset.map(decode)  # pipediag: culprit
    dataset = dataset.batch(256)

    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input(shape=(COLUMNS - 1,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
