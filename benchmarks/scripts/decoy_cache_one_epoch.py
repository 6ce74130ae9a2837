"""Decoy: a costly `map` that never changes, over data that is read once: a cache gains nothing."""

import keras
import tensorflow as tf


def spectrum(number):
    sound = tf.sin(tf.range(32_000, dtype=tf.float32) * tf.cast(number, tf.float32))
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=128))
    weights = tf.signal.linear_to_mel_weight_matrix(32, 257, 16_000)
    return tf.math.log(frames @ weights + 1e-3), sound[:1]


dataset = tf.data.Dataset.range(400_000)
dataset = dataset.map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.batch(16)

layers = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input(shape=(247, 32)), *layers])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=1, verbose=2)  # pipediag: loop
