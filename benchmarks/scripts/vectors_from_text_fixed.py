"""`vectors_from_text.py` with the vectors kept as an array, and mapped."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WORDS, DIMENSION, LONGEST, EPOCHS = 240_000, 100, 24, 30

rng = np.random.default_rng(74)


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "vectors.npy")
    np.save(path, rng.standard_normal((WORDS, DIMENSION), dtype=np.float32))
    vectors = np.load(path, mmap_mode="r")

sentences = rng.integers(0, WORDS, size=(4096, LONGEST))
labels = (vectors[sentences[:, 0], 0] > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((sentences, labels)).shuffle(4096).batch(128)

embedding = keras.layers.Embedding(WORDS, DIMENSION, trainable=False)
model = keras.Sequential(
    [
        keras.Input(shape=(LONGEST,), dtype="int32"),
        embedding,
        keras.layers.Conv1D(64, 3, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
embedding.set_weights([vectors])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
