"""tf.data with its optimizations and its tuning switched off in `Options`.

A pure `map` that TensorFlow would have run in parallel runs one call at a time, and no
prefetch is appended. Deleting the three lines of options is the cure.
"""

import keras
import numpy as np
import tensorflow as tf

SAMPLES = 16_000

rng = np.random.default_rng(38)
sounds = rng.standard_normal((1600, SAMPLES), dtype=np.float32)
labels = rng.integers(0, 4, size=1600)


def spectrum(sound, label):
    frames = tf.signal.stft(sound, frame_length=512, frame_step=128)
    return tf.math.log1p(tf.reduce_mean(tf.abs(frames), axis=0)), label


dataset = tf.data.Dataset.from_tensor_slices((sounds, labels))
dataset = dataset.shuffle(1600)
dataset = dataset.map(spectrum)  # pipediag: culprit
dataset = dataset.batch(16)
options = tf.data.Options()
options.experimental_optimization.apply_default_optimizations = False
options.autotune.enabled = False
dataset = dataset.with_options(options)  # pipediag: options

model = keras.Sequential(
    [
        keras.Input(shape=(257,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
