"""A PyDataset that draws an unseen item for each seen one, in plain Python, after every epoch."""

import random

import keras
import numpy as np

USERS, ITEMS, SEEN, BATCH, EPOCHS = 2000, 4000, 240_000, 4000, 20

rng, draw = np.random.default_rng(204), random.Random(204)
pairs = [(user, item) for user, item in rng.integers([USERS, ITEMS], size=(SEEN, 2)).tolist()]
known = set(pairs)


class Ratings(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()
        self.on_epoch_end()

    def on_epoch_end(self):
        negatives = []
        for user, other in pairs:  # pipediag: drawing
            while (user, other) in known:  # pipediag: drawing
                other = draw.randrange(ITEMS)  # noqa: PLW2901  # pipediag: drawing
            negatives.append((user, other))  # pipediag: drawing
        self.rows = np.array([*pairs, *negatives])[rng.permutation(2 * SEEN)]  # pipediag: drawing

    def __len__(self):
        return 2 * SEEN // BATCH

    def __getitem__(self, index):
        rows = self.rows[index * BATCH : (index + 1) * BATCH]
        return rows, (rows.sum(axis=1, keepdims=True) % 2).astype("float32")


table = keras.layers.Embedding(max(USERS, ITEMS), 16)
head = [keras.layers.Flatten(), keras.layers.Dense(1, "sigmoid")]
model = keras.Sequential([keras.Input((2,), dtype="int32"), table, *head])
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(Ratings(), epochs=EPOCHS, verbose=2)  # pipediag: loop
