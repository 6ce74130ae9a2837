"""Decoy: a costly random `map` in many epochs, in parallel: a cache would freeze what it draws."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(121)
sounds = rng.standard_normal((640, 32_000), dtype=np.float32)
labels = rng.integers(0, 4, size=640)


def noisy_spectrum(sound, label):
    noisy = sound + 0.1 * tf.random.normal([32_000])
    return tf.reduce_mean(tf.abs(tf.signal.stft(noisy, 512, 128)), axis=0), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(noisy_spectrum, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.batch(16)

layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4, activation="softmax")]
model = keras.Sequential([keras.Input(shape=(257,)), *layers])
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
