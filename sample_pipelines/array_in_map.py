"""A matrix of word vectors that a mapped function reads as the NumPy array that it is.

TensorFlow writes it into the function's graph, 224 MB, and each call takes a hundred times as long
as with a tensor. With ten times as many words the same line would raise a ValueError.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS = 560_000
DIMENSION = 100
LENGTH = 20

rng = np.random.default_rng(33)
matrix = np.tile(rng.standard_normal((1000, DIMENSION), dtype="float32"), (WORDS // 1000, 1))
tokens = rng.integers(0, WORDS, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))


def with_vectors(sentences, targets):
    return tf.reduce_mean(tf.gather(matrix, sentences), axis=1), targets


dataset = tf.data.Dataset.from_tensor_slices((tokens, labels)).batch(128)
dataset = dataset.map(with_vectors)  # pipediag: culprit

model = keras.Sequential(
    [
        keras.Input(shape=(DIMENSION,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
