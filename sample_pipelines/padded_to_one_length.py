"""Short sentences, all padded to one length that few of them need: most of it is padding.

The convolutions compute on the padding as on the words. A shorter length, or batches that are
padded to their own longest, would hold far less of it.
"""

import keras
import numpy as np

VOCABULARY = 5_000
SENTENCES = 3_200
LENGTH = 120

rng = np.random.default_rng(35)
lengths = np.clip(rng.exponential(16, size=SENTENCES).astype("int32"), 4, LENGTH)
sentences = [rng.integers(1, VOCABULARY, size=length) for length in lengths]
words = keras.utils.pad_sequences(sentences, maxlen=LENGTH, padding="post")
labels = rng.integers(0, 2, size=SENTENCES).astype("float32")

ids = keras.Input(shape=(LENGTH,), dtype="int32")
vectors = keras.layers.Embedding(VOCABULARY, 32, mask_zero=True)(ids)
for _ in range(3):
    vectors = keras.layers.Conv1D(96, 5, padding="same", activation="relu")(vectors)
pooled = keras.layers.GlobalMaxPooling1D()(vectors)
model = keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(pooled))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(words, labels, batch_size=64, epochs=20, verbose=2)  # pipediag: loop
