"""The same parts, fetched by a map with 16 calls on 16 threads: the flat_map only opens them."""

import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


def fetched(path):
    time.sleep(0.05)
    return path


def copy_of(path):
    return tf.ensure_shape(tf.numpy_function(fetched, [path], tf.string), [])


def decode(records):
    rows = tf.reshape(tf.io.decode_raw(records, tf.float32), [-1, 32])
    return rows, rows[:, :1]


with tempfile.TemporaryDirectory() as folder:
    parts = [str(Path(folder) / f"part-{number:02d}.tfrecord") for number in range(48)]
    for seed, part in enumerate(parts):
        with tf.io.TFRecordWriter(part) as writer:
            for row in np.random.default_rng(seed).standard_normal((64, 32), dtype=np.float32):
                writer.write(row.tobytes())
    dataset = tf.data.Dataset.from_tensor_slices(parts)
    dataset = dataset.map(copy_of, num_parallel_calls=16).flat_map(tf.data.TFRecordDataset)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 16
    dataset = dataset.batch(32).map(decode).with_options(options)
    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input(shape=(32,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
