"""`fit` on a Python generator that makes skip-grams with negative samples, pair by pair.

Keras wraps the generator into a dataset; its thread and the training loop share one
interpreter lock, and the generator holds it most of the time.
"""

import random

import keras
import numpy as np

VOCABULARY = 500
POSITIVES = 1024
NEGATIVES = 4
WINDOW = 4

text = np.random.default_rng(26).integers(0, VOCABULARY, size=50_000).tolist()
random.seed(26)


def skip_grams():  # pipediag: culprit
    """Endless batches of (word, neighbour) pairs: one true to four drawn at random."""
    while True:
        pairs, labels = [], []
        for _ in range(POSITIVES):
            position = random.randrange(WINDOW, len(text) - WINDOW)  # pipediag: culprit
            offset = random.randint(1, WINDOW)  # pipediag: culprit
            pairs.append((text[position], text[position + offset]))
            labels.append(1.0)
            for _ in range(NEGATIVES):
                pairs.append((text[position], random.randrange(VOCABULARY)))  # pipediag: culprit
                labels.append(0.0)
        yield np.array(pairs, dtype="int32"), np.array(labels, dtype="float32")  # pipediag: culprit


model = keras.Sequential(
    [
        keras.Input(shape=(2,), dtype="int32"),
        keras.layers.Embedding(VOCABULARY, 8),
        keras.layers.Flatten(),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(skip_grams(), steps_per_epoch=500, epochs=5, verbose=2)  # pipediag: loop
