"""A costly, pure `map` held to one call at a time by `num_parallel_calls=1`.

Without the argument TensorFlow would run the spectra in parallel; with it, one core is idle.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 16_000

rng = np.random.default_rng(63)
sounds = rng.standard_normal((1600, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=1600)


def spectrum(sound, label):
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.shuffle(1600)
dataset = dataset.map(spectrum, num_parallel_calls=1)  # pipediag: culprit
dataset = dataset.batch(16)

model = keras.Sequential(
    [
        keras.Input(shape=(257,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
