"""Frozen word vectors looked up in the input pipeline, which hands out vectors in place of ids.

Each word of four bytes leaves the pipeline as 400 bytes of numbers, which are batched and buffered
before the model sees them. The model could look the same rows up in a frozen Embedding.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS = 20_000
DIMENSION = 100
LENGTH = 60

rng = np.random.default_rng(81)
matrix = tf.constant(rng.standard_normal((WORDS, DIMENSION)).astype("float32") * 0.4)
tokens = rng.integers(0, WORDS, size=(51_200, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(51_200, 1))


def with_vectors(sentences, targets):
    return tf.gather(matrix, sentences), targets


dataset = tf.data.Dataset.from_tensor_slices((tokens, labels)).shuffle(4000)
dataset = dataset.batch(256, drop_remainder=True)
dataset = dataset.map(with_vectors)  # pipediag: culprit

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH, DIMENSION)),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
