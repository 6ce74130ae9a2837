"""Text features counted in pure Python inside a `map` with sixteen parallel calls.

The interpreter lock lets one of the sixteen run at a time, so raising the number does nothing.
TensorFlow operations, other processes, or doing it once beforehand would help; one call for each
batch helps some.
"""

import keras
import numpy as np
import tensorflow as tf

LETTERS = 26
LENGTH = 400

rng = np.random.default_rng(24)
texts = rng.integers(0, LETTERS, size=(12_800, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=12_800).astype("float32")


def count_letters(text):
    counts = [0.0] * LETTERS
    previous = 0
    for letter in text.tolist():
        counts[letter] += 1.0 if letter != previous else 0.5  # pipediag: hot
        previous = letter
    return np.asarray(counts, dtype=np.float32)


def featurise(text, label):
    counts = tf.numpy_function(count_letters, [text], tf.float32)
    return tf.ensure_shape(counts, [LETTERS]), label


dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
dataset = dataset.shuffle(12_800)
dataset = dataset.map(featurise, num_parallel_calls=16)  # pipediag: culprit
dataset = dataset.batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LETTERS,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
