"""Decoy: a shuffle of all clips fills behind a map that draws new noise, which can't be cached."""

import keras
import numpy as np
import tensorflow as tf

CLIPS, SAMPLES, EPOCHS = 800, 16_000, 12

rng = np.random.default_rng(202)
sounds = rng.standard_normal((CLIPS, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 8, size=CLIPS)


def noisy_spectrum(sound, label):
    sound += tf.random.normal([SAMPLES], stddev=0.1)
    spectrum = tf.abs(tf.signal.stft(sound, frame_length=640, frame_step=160, fft_length=1024))
    mel = tf.signal.linear_to_mel_weight_matrix(64, spectrum.shape[-1], 16_000, 60.0, 7600.0)
    return tf.math.log(spectrum @ mel + 1e-6)[:96], label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(noisy_spectrum, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(CLIPS)  # pipediag: shuffle
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

layers = [keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dense(8)]
model = keras.Sequential([keras.Input((96, 64)), *layers])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
