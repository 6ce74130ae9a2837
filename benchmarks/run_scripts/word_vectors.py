"""Word vectors are parsed from a text file before a short training."""

import tempfile
from pathlib import Path

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

WORDS, DIMENSIONS = 30_000, 100
rng = np.random.default_rng(5)


def write_vectors(path):
    """Stands for a download of GloVe."""
    texts = [f"{value:.5f}" for value in rng.normal(size=5000)]
    chosen = rng.integers(0, len(texts), size=(WORDS, DIMENSIONS))
    with path.open("w", encoding="utf-8") as file:
        for word, row in enumerate(chosen):
            file.write(f"word{word} " + " ".join([texts[n] for n in row]) + "\n")


def parse_vectors(path):
    vectors = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            word, *values = line.split()
            vectors[word] = np.asarray(values, dtype="float32")
    return vectors


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "vectors.txt"
    write_vectors(path)
    vectors = parse_vectors(path)
matrix = np.stack([vectors[f"word{number}"] for number in range(WORDS)])

sentences = rng.integers(0, WORDS, size=(9600, 60))
labels = rng.integers(0, 2, size=9600)
table = keras.layers.Embedding(WORDS, DIMENSIONS, trainable=False)
table.build((1,))
table.set_weights([matrix])
model = keras.Sequential(
    [
        keras.Input(shape=(60,), dtype="int32"),
        table,
        keras.layers.Conv1D(64, 5, activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="rmsprop", loss="binary_crossentropy")
own = FitClock(clock.run)
model.fit(sentences, labels, batch_size=128, epochs=10, verbose=0, callbacks=[own])
