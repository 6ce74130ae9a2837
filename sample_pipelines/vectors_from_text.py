"""Word vectors parsed from their text file in every run, then a short training.

Turning the numbers of 240,000 lines from text into floats takes longer than the ten epochs
that follow. Kept as a `.npy` file, they would be there at once.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WORDS, DIMENSION, LONGEST, EPOCHS = 240_000, 100, 24, 10

rng = np.random.default_rng(74)


def write_vectors(path):
    """A file in the form of GloVe's: a word and its numbers on each line."""
    numbers = [
        " ".join(f"{value:.5f}" for value in row) for row in rng.standard_normal((200, DIMENSION))
    ]
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"word{index} {numbers[index % 200]}\n" for index in range(WORDS))


def read_vectors(path):
    index, vectors = {}, []
    with path.open(encoding="utf-8") as file:
        for line in file:  # pipediag: parsing
            word, *values = line.rstrip().split(" ")  # pipediag: parsing
            index[word] = len(vectors)  # pipediag: parsing
            numbers = [float(value) for value in values]  # pipediag: parsing
            vectors.append(np.asarray(numbers, dtype=np.float32))  # pipediag: parsing
    return index, np.stack(vectors)


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "vectors.txt")
    write_vectors(path)
    index, vectors = read_vectors(path)

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
