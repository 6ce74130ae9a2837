"""Decoy: plain files one after the other, from the page cache: more readers gain nothing."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


def write_files(folder):
    rng = np.random.default_rng(113)
    for number in range(8):
        with tf.io.TFRecordWriter(f"{folder}/part-{number}.tfrecord") as writer:
            for row in rng.standard_normal((40_000, 8), dtype=np.float32):
                writer.write(row.tobytes())


def decode(records):
    rows = tf.reshape(tf.io.decode_raw(records, tf.float32), [-1, 8])
    return rows, rows[:, :1]


with tempfile.TemporaryDirectory() as folder:
    write_files(folder)
    files = sorted(map(str, Path(folder).iterdir()))
    dataset = tf.data.TFRecordDataset(files)  # pipediag: culprit
    dataset = dataset.batch(16_384)  # pipediag: culprit
    dataset = dataset.map(decode)

    layers = [keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input(shape=(8,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
