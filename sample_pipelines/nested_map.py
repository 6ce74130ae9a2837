"""Files read by `flat_map`, with the decoding done inside its function.

TensorFlow makes a pure `map` parallel by itself, but not one inside `flat_map`. Moved behind
it, the same decoding would use every core.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FILES = 20
RECORDS = 64
SAMPLES = 16_000


def write_files(folder):
    rng = np.random.default_rng(64)
    for number in range(FILES):
        with tf.io.TFRecordWriter(str(folder / f"part-{number:03d}.tfrecord")) as writer:
            for sound in rng.standard_normal((RECORDS, SAMPLES), dtype=np.float32):
                writer.write(sound.tobytes())


def spectrum(record):
    sound = tf.ensure_shape(tf.io.decode_raw(record, tf.float32), [SAMPLES])
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), sound[:1]


def examples_in(path):
    return tf.data.TFRecordDataset(path).map(spectrum)  # pipediag: culprit


with tempfile.TemporaryDirectory() as folder:
    write_files(Path(folder))
    files = sorted(str(path) for path in Path(folder).glob("*.tfrecord"))
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.flat_map(examples_in)  # pipediag: culprit
    dataset = dataset.shuffle(64)
    dataset = dataset.batch(16)

    model = keras.Sequential(
        [
            keras.Input(shape=(257,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
