"""The large Embedding under plain SGD whose lookup reads rows through the variable."""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 500_000
LENGTH = 20

rng = np.random.default_rng(93)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(128)


class RowLookup(keras.layers.Embedding):
    def call(self, inputs):
        return tf.nn.embedding_lookup(self.embeddings.value, inputs)


model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        RowLookup(VOCABULARY, 64),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=5, verbose=2)  # pipediag: loop
