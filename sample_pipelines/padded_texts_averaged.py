"""Near miss: reviews as rows of 200 ids, most with some twenty words, and an average over all.

The padding is part of the average, so that shorter batches would give other outputs.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
REVIEWS = 6_400
LENGTH = 200

rng = np.random.default_rng(41)
lengths = np.clip(rng.exponential(14, size=REVIEWS).astype("int32"), 4, LENGTH)
reviews = np.zeros((REVIEWS, LENGTH), np.int32)
for row, length in zip(reviews, lengths, strict=True):
    row[:length] = rng.integers(1, VOCABULARY, size=length)
labels = rng.integers(0, 2, size=REVIEWS).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((reviews, labels))
dataset = dataset.shuffle(REVIEWS)
dataset = dataset.batch(64).prefetch(2)  # pipediag: culprit

ids = keras.Input(shape=(None,), dtype="int32")
vectors = keras.layers.Embedding(VOCABULARY, 32)(ids)
for _ in range(2):
    vectors = keras.layers.Conv1D(64, 5, padding="same", activation="relu")(vectors)
vector = keras.layers.GlobalAveragePooling1D()(vectors)
model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(vector))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
