"""Sentences of similar lengths, padded to the longest of a batch: hardly any of it is padding.

They are what buckets of lengths would make of many more, so that buckets have nothing to gain.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
SENTENCES = 6_400

rng = np.random.default_rng(35)
lengths = rng.integers(57, 61, size=SENTENCES, dtype=np.int32)
ends = np.cumsum(lengths, dtype="int32")
words = tf.constant(rng.integers(1, VOCABULARY, size=ends[-1], dtype=np.int32))
labels = rng.integers(0, 2, size=SENTENCES).astype("float32")


def sentence(length, end, label):
    return words[end - length : end], label


dataset = tf.data.Dataset.from_tensor_slices((lengths, ends, labels)).shuffle(SENTENCES)
dataset = dataset.map(sentence)
dataset = dataset.padded_batch(64)  # pipediag: culprit

ids = keras.Input(shape=(None,), dtype="int32")
vectors = keras.layers.Embedding(VOCABULARY, 32, mask_zero=True)(ids)
for _ in range(3):
    vectors = keras.layers.Conv1D(96, 5, padding="same", activation="relu")(vectors)
pooled = keras.layers.GlobalMaxPooling1D()(vectors)
model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(pooled))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
