"""Decoy: a serial `map` of pure Python; parallel calls would share one interpreter lock."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(118)
texts = rng.integers(0, 26, size=(12_800, 400), dtype=np.int32)
labels = rng.integers(0, 2, size=12_800).astype("float32")


def count_letters(text):
    counts = [0.0] * 26
    for letter in text.tolist():
        counts[letter] += 1.0
    return np.asarray(counts, dtype=np.float32)


def featurise(text, label):
    return tf.ensure_shape(tf.numpy_function(count_letters, [text], tf.float32), [26]), label


dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
dataset = dataset.shuffle(12_800)
dataset = dataset.map(featurise)  # pipediag: culprit
dataset = dataset.batch(128)

layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
model = keras.Sequential([keras.Input(shape=(26,)), *layers])
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
