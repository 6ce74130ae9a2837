"""A Keras `PyDataset` whose `__getitem__` waits for a store and then prepares the batch in NumPy.

Keras calls it for one batch after the other. Several workers would wait at the same time.
"""

import time

import keras
import numpy as np

FEATURES = 64
BATCH = 128


class Stored(keras.utils.PyDataset):
    """Rows of a remote table, normalised."""

    def __init__(self, table, labels):
        super().__init__()
        self.table = table
        self.labels = labels

    def __len__(self):
        return len(self.table) // BATCH

    def __getitem__(self, index):
        rows = slice(index * BATCH, (index + 1) * BATCH)
        time.sleep(0.025)  # pipediag: culprit
        batch = self.table[rows]
        batch = (batch - batch.mean(axis=0)) / (batch.std(axis=0) + 1e-6)
        return batch, self.labels[rows]


rng = np.random.default_rng(31)
table = rng.standard_normal((BATCH * 200, FEATURES), dtype=np.float32)
labels = (table[:, :1] > 0).astype("float32")

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(Stored(table, labels), epochs=3, verbose=2)  # pipediag: loop
