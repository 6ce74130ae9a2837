"""A costly, deterministic `map` computed anew in each of many epochs, over data that would fit.

Six hundred spectrograms are made again every epoch from the same sounds. A cache after
the map would make every epoch but the first nearly free of them.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 32_000

rng = np.random.default_rng(32)
sounds = rng.standard_normal((640, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=640)


def mel_spectrogram(sound, label):
    frames = tf.abs(tf.signal.stft(sound, frame_length=512, frame_step=128))
    weights = tf.signal.linear_to_mel_weight_matrix(32, 257, 16_000)
    return tf.math.log(frames @ weights + 1e-3), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.map(  # pipediag: culprit
    mel_spectrogram, num_parallel_calls=tf.data.AUTOTUNE
)
dataset = dataset.batch(16)

model = keras.Sequential(
    [
        keras.Input(shape=(247, 32)),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
