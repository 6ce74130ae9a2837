"""Many compressed TFRecord files read in parallel: near miss of sequential reading.

The files of `many_files.py`, several open at a time, with the number of readers left to
TensorFlow. Inflating them is still the bottleneck, but not because it is done one by one.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FILES = 48
RECORDS = 64
SIZE = 16_384


def write_files(folder):
    rng = np.random.default_rng(31)
    gzip = tf.io.TFRecordOptions(compression_type="GZIP", compression_level=1)
    for number in range(FILES):
        path = str(folder / f"part-{number:03d}.tfrecord.gz")
        with tf.io.TFRecordWriter(path, gzip) as writer:
            for _ in range(RECORDS):
                signal = rng.integers(0, 24, size=SIZE, dtype=np.uint8)
                writer.write(signal.tobytes())


def decode(records):
    signals = tf.reshape(tf.io.decode_raw(records, tf.uint8), [-1, SIZE])
    pieces = tf.cast(signals[:, ::64], tf.float32) / 24.0
    return pieces, tf.cast(signals[:, :1] % 2, tf.float32)


with tempfile.TemporaryDirectory() as folder:
    write_files(Path(folder))
    files = sorted(str(path) for path in Path(folder).glob("*.gz"))
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.interleave(  # pipediag: culprit
        lambda path: tf.data.TFRecordDataset(path, compression_type="GZIP"),  # pipediag: culprit
        cycle_length=4,
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    dataset = dataset.shuffle(256)
    dataset = dataset.batch(64)
    dataset = dataset.map(decode)

    model = keras.Sequential(
        [
            keras.Input(shape=(SIZE // 64,)),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="sgd", loss="binary_crossentropy")
    model.fit(dataset, epochs=60, verbose=2)  # pipediag: loop
