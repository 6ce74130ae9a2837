"""Clips padded to the longest of a batch, in a `fit` that XLA compiles anew for each length."""

import keras
import numpy as np
import tensorflow as tf

CLIPS, FEATURES = 1600, 12
rng = np.random.default_rng(7)
lengths = rng.integers(20, 90, CLIPS)
clips = [rng.standard_normal((n, FEATURES), dtype=np.float32) for n in lengths]
targets = np.array([c.mean() for c in clips], "float32")


def rows():
    yield from zip(clips, targets, strict=True)


spec = (tf.TensorSpec([None, FEATURES]), tf.TensorSpec([]))
dataset = tf.data.Dataset.from_generator(rows, output_signature=spec)
dataset = dataset.shuffle(CLIPS).padded_batch(16)
model = keras.Sequential(
    [
        keras.Input((None, FEATURES)),
        keras.layers.Conv1D(24, 3, padding="same", activation="relu"),
        keras.layers.Conv1D(24, 3, padding="same", activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse", jit_compile=True)
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
