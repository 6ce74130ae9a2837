"""`python_map_lock.py` with the letters counted by TensorFlow, for a batch at a time."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(24)
texts = rng.integers(0, 26, size=(12_800, 400), dtype=np.int32)
labels = rng.integers(0, 2, size=12_800).astype("float32")


def featurise(text, label):
    counts = tf.math.bincount(text, minlength=26, maxlength=26, axis=-1, dtype=tf.float32)
    return tf.ensure_shape(counts, [None, 26]), label


dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
dataset = dataset.shuffle(12_800).batch(128).map(featurise)

model = keras.Sequential([keras.Input(shape=(26,))])
model.add(keras.layers.Dense(1536, activation="relu"))
model.add(keras.layers.Dense(1536, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
