"""`missing_cache.py` with the cache behind the `map`."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(32)
sounds = rng.standard_normal((640, 32_000), dtype=np.float32)
labels = rng.integers(0, 4, size=640)


def mel_spectrogram(sound, label):
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=128))
    weights = tf.signal.linear_to_mel_weight_matrix(32, 257, 16_000)
    return tf.math.log(frames @ weights + 1e-3), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(mel_spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()
dataset = dataset.batch(16)

layers = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(4, activation="softmax")]
model = keras.Sequential([keras.Input(shape=(247, 32)), *layers])
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
