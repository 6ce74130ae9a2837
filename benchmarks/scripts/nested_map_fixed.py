"""`nested_map.py` with the decoding moved behind the `flat_map`, where TensorFlow runs it twice."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 16_000


def write_files(folder):
    rng = np.random.default_rng(64)
    for number in range(20):
        with tf.io.TFRecordWriter(f"{folder}/part-{number:03d}.tfrecord") as writer:
            for sound in rng.standard_normal((64, SAMPLES), dtype=np.float32):
                writer.write(sound.tobytes())


def spectrum(record):
    sound = tf.ensure_shape(tf.io.decode_raw(record, tf.float32), [SAMPLES])
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), sound[:1]


with tempfile.TemporaryDirectory() as folder:
    write_files(folder)
    dataset = tf.data.Dataset.from_tensor_slices(sorted(map(str, Path(folder).iterdir())))
    dataset = dataset.flat_map(tf.data.TFRecordDataset)
    dataset = dataset.map(spectrum)  # pipediag: culprit
    dataset = dataset.shuffle(64).batch(16)

    layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input(shape=(257,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
