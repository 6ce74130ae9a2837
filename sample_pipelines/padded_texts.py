"""Reviews as rows of 200 ids, of which most hold some twenty words: the model computes on padding.

It ignores padding, so that batches cut to their own longest review give the same outputs.
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
vectors = keras.layers.Embedding(VOCABULARY, 32, mask_zero=True)(ids)
vector = keras.layers.LSTM(48)(vectors)
model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(vector))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
