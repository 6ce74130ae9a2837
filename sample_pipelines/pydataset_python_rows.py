"""A Keras `PyDataset` that builds each row in Python while the training loop wants the same lock.

Little of the cost shows as waiting for a batch: the thread that makes batches and the training
loop fight for the interpreter lock, and the loop is slow instead.
"""

import random

import keras
import numpy as np

VOCABULARY = 1000
LENGTH = 64
BATCH = 256
WORDS = [f"Word{number}," if number % 7 else f"word{number}." for number in range(1500)]
KEEP = [0.9 if number < 300 else 1.0 for number in range(len(WORDS))]
INDEX = {word.strip(".,").lower(): number for number, word in enumerate(WORDS)}


class Sentences(keras.utils.PyDataset):
    """Windows of a text: cleaned, looked up and subsampled word by word."""

    def __init__(self, text, batches):
        super().__init__()
        self.text = text
        self.batches = batches

    def __len__(self):
        return self.batches

    def __getitem__(self, index):  # pipediag: culprit
        rows, labels = [], []
        for row in range(BATCH):
            start = (index * BATCH + row) % (len(self.text) - LENGTH)
            numbers = []
            for word in self.text[start : start + LENGTH]:
                number = INDEX[word.strip(".,").lower()]  # pipediag: culprit
                known = number < VOCABULARY and random.random() < KEEP[number]  # pipediag: culprit
                numbers.append(number if known else 0)  # pipediag: culprit
            rows.append(numbers)
            labels.append(float(sum(numbers) % 2))
        return np.array(rows, dtype="int32"), np.array(labels, dtype="float32")


numbers = np.random.default_rng(25).integers(0, len(WORDS), size=40_000)
text = [WORDS[number] for number in numbers]

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(Sentences(text, 500), epochs=5, verbose=2)  # pipediag: loop
