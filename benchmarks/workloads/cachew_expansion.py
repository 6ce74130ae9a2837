"""Cachew's sweep: records that expand two and a half times, and a wait: `cachew_expansion.py MS`.

The longer the wait for each batch, the more a cache of what was computed is worth against one of
what was read.
"""

import sys
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf

SIZE = 40_000
wait_ms = float(sys.argv[1])


def write_records(path):
    rng = np.random.default_rng(204)
    gzip = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
    with tf.io.TFRecordWriter(path, gzip) as writer:
        for _ in range(1200):
            writer.write(rng.integers(0, 64, size=SIZE, dtype=np.uint8).tobytes())


def expand(records):
    batch = tf.reshape(tf.io.decode_raw(records, tf.uint8), [-1, SIZE])
    return tf.concat([batch, batch, batch[:, : SIZE // 2]], axis=1)


def compute(batch):
    time.sleep(wait_ms / 1000)
    return batch


def prepared(batch):
    batch = tf.ensure_shape(tf.numpy_function(compute, [batch], tf.uint8), [None, 5 * SIZE // 2])
    features = tf.cast(batch[:, ::400], tf.float32) / 64.0
    return features, features[:, :1]


with tempfile.TemporaryDirectory() as folder:
    write_records(f"{folder}/train.gz")
    dataset = tf.data.TFRecordDataset(f"{folder}/train.gz", compression_type="GZIP")
    dataset = dataset.batch(24)
    dataset = dataset.map(expand)
    dataset = dataset.map(prepared)

    model = keras.Sequential([keras.Input(shape=(250,)), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)
