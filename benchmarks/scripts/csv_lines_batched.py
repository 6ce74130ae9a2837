"""Lines of a CSV file decoded a batch at a time, for a network with real work to do."""

import tempfile

import keras
import numpy as np
import tensorflow as tf

COLUMNS = 12


def decode(lines):
    fields = tf.io.decode_csv(lines, [0.0] * COLUMNS)
    return tf.stack(fields[1:], axis=1), fields[0]


with tempfile.TemporaryDirectory() as folder:
    table = np.random.default_rng(102).standard_normal((40_000, COLUMNS))
    np.savetxt(f"{folder}/train.csv", table, delimiter=",", fmt="%.4f")
    dataset = tf.data.TextLineDataset(f"{folder}/train.csv")
    dataset = dataset.batch(256).map(decode)

    dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.Input(shape=(COLUMNS - 1,)), *dense, keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
