"""`slow_shuffle_fill.py` with the shuffle above the costly `map`: still input."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(35)
sounds = tf.constant(rng.standard_normal((2000, 16_000), dtype=np.float32))
labels = tf.constant(rng.integers(0, 4, size=2000))


def spectrum(index):
    sound = tf.gather(sounds, index % 2000)
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=128))
    return tf.reduce_mean(frames, axis=0), tf.gather(labels, index % 2000)


dataset = tf.data.Dataset.range(8000)
dataset = dataset.shuffle(2000)
dataset = dataset.map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
dataset = dataset.batch(16)

layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4, activation="softmax")]
model = keras.Sequential([keras.Input(shape=(257,)), *layers])
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
