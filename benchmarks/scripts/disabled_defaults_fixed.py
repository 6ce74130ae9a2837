"""`disabled_defaults.py` without its options: input still, on all cores now."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(38)
sounds = rng.standard_normal((1600, 16_000), dtype=np.float32)
labels = rng.integers(0, 4, size=1600)


def spectrum(sound, label):
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.shuffle(1600)
dataset = dataset.map(spectrum)  # pipediag: culprit
dataset = dataset.batch(16)

layers = [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4, activation="softmax")]
model = keras.Sequential([keras.Input(shape=(257,)), *layers])
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
