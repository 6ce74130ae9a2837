"""Reviews that `padded_batch` pads to 200 ids, as the model declares, of which most have twenty.

It ignores padding, so that batches as long as their own longest review give the same outputs.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5_000
REVIEWS = 6_400
MAX_LENGTH = 200

rng = np.random.default_rng(43)
lengths = np.clip(rng.exponential(14, size=REVIEWS).astype("int32"), 4, MAX_LENGTH)
words = rng.integers(1, VOCABULARY, size=lengths.sum(), dtype="int32")
labels = rng.integers(0, 2, size=REVIEWS).astype("float32")


def build_model(max_length: int) -> keras.Model:
    ids = keras.Input((max_length,), dtype="int32", name="ids")
    vectors = keras.layers.Embedding(VOCABULARY, 32, mask_zero=True)(ids)
    vector = keras.layers.LSTM(48)(vectors)
    return keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(vector))


reviews = tf.RaggedTensor.from_row_lengths(words, lengths)
dataset = tf.data.Dataset.from_tensor_slices((reviews, labels))
dataset = dataset.shuffle(REVIEWS).map(lambda ids, label: (ids[:MAX_LENGTH], label))
dataset = dataset.padded_batch(64, padded_shapes=([MAX_LENGTH], []))  # pipediag: culprit
dataset = dataset.prefetch(2)

model = build_model(MAX_LENGTH)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=20, verbose=2)  # pipediag: loop
