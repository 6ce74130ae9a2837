"""GloVe vectors read from their text file and frozen in an Embedding, under a small text CNN.

Reading the text takes its time once, before training. The table is not trainable, so no
gradient touches it; the convolution over the looked-up vectors is the work.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WORDS = 5000
DIMENSION = 50
LENGTH = 40


def write_vectors(path):
    """A file in GloVe's format: a word and its numbers a line, no header."""
    vectors = np.random.default_rng(8).standard_normal((WORDS, DIMENSION)) * 0.4
    with path.open("w", encoding="utf-8") as lines:
        for index, vector in enumerate(vectors):
            lines.write(f"word{index} " + " ".join(f"{value:.5f}" for value in vector) + "\n")


def load_vectors(path):
    index, rows = {}, []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            word, *numbers = line.split()
            index[word] = len(index)
            rows.append(np.asarray(numbers, dtype=np.float32))
    return index, np.stack(rows)


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "glove.small.50d.txt"
    write_vectors(path)
    word_index, matrix = load_vectors(path)

rng = np.random.default_rng(9)
sentences = rng.integers(0, WORDS, size=(12_800, LENGTH))
tokens = np.array([[word_index[f"word{number}"] for number in row] for row in sentences[:2560]])
tokens = np.tile(tokens, (5, 1)).astype("int32")
labels = (matrix[tokens].mean(axis=(1, 2)) > 0).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((tokens, labels)).shuffle(12_800).batch(64)
model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(
            len(word_index),
            DIMENSION,
            embeddings_initializer=keras.initializers.Constant(matrix),
            trainable=False,
        ),
        keras.layers.Conv1D(128, 5, activation="relu"),
        keras.layers.Conv1D(128, 5, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
