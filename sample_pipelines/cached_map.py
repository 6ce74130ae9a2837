"""A costly, deterministic `map` with a cache behind it: near miss of a missing cache.

From the second epoch on the spectrograms come from memory, and the convolutions are the work.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 8000

rng = np.random.default_rng(33)
sounds = rng.standard_normal((640, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=640)


def mel_spectrogram(sound, label):
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=256))
    weights = tf.signal.linear_to_mel_weight_matrix(32, 257, 16_000)
    return tf.math.log(frames @ weights + 1e-3), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(mel_spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()
dataset = dataset.shuffle(640)
dataset = dataset.batch(16)

model = keras.Sequential(
    [
        keras.Input(shape=(30, 32)),
        keras.layers.Conv1D(256, 5, activation="relu"),
        keras.layers.Conv1D(256, 5, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=30, verbose=2)  # pipediag: loop
