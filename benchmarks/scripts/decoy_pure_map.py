"""Decoy: a costly pure `map` without AUTOTUNE, on data read once: every core is at work already."""

import keras
import tensorflow as tf


def spectrum(number):
    sound = tf.sin(tf.range(16_000, dtype=tf.float32) * tf.cast(number, tf.float32))
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), sound[:1]


dataset = tf.data.Dataset.range(10_000_000)
dataset = dataset.map(spectrum)  # pipediag: culprit
dataset = dataset.batch(16)

layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input(shape=(257,)), *layers])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, verbose=2)  # pipediag: loop
