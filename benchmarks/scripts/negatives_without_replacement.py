"""Matrix factorisation with BPR-like negatives, Keras fit on a PyDataset."""

import tempfile

import keras
import numpy as np
from keras import layers

N_USERS, N_ITEMS, DIM = 5_000, 300_000, 32
BATCH, NEG = 1024, 4
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(7)
users = rng.integers(0, N_USERS, 200_000).astype("int32")
items = (rng.zipf(1.3, 200_000) % N_ITEMS).astype("int32")


class Interactions(keras.utils.PyDataset):
    def __init__(self, users, items, **kw):
        super().__init__(**kw)
        self.users, self.items = users, items
        self.on_epoch_end()

    def __len__(self):
        return len(self.users) // BATCH

    def on_epoch_end(self):
        self.order = np.random.permutation(len(self.users))

    def sample_negatives(self):
        # NEG * BATCH distinct items
        return np.random.choice(N_ITEMS, size=NEG * BATCH, replace=False)  # pipediag: culprit

    def __getitem__(self, i):
        rows = self.order[i * BATCH : (i + 1) * BATCH]
        u, pos = self.users[rows], self.items[rows]
        neg = np.stack([self.sample_negatives()[:BATCH] for _ in range(NEG)], axis=1)
        all_items = np.concatenate([pos[:, None], neg], axis=1).astype("int32")
        labels = np.zeros(all_items.shape, "float32")
        labels[:, 0] = 1.0
        return {"user": u, "items": all_items}, labels


user_in = keras.Input((), dtype="int32", name="user")
item_in = keras.Input((NEG + 1,), dtype="int32", name="items")
u = layers.Embedding(N_USERS, DIM)(user_in)
v = layers.Embedding(N_ITEMS, DIM)(item_in)
u = layers.Dense(DIM, activation="relu")(u)
v = layers.Dense(DIM, activation="relu")(v)
scores = layers.Dot(axes=(2, 1))([v, u])
model = keras.Model({"user": user_in, "items": item_in}, scores)
model.compile(keras.optimizers.SGD(0.05), keras.losses.BinaryCrossentropy(from_logits=True))
history = model.fit(Interactions(users, items), epochs=4, verbose=2)  # pipediag: loop
print("final", history.history["loss"][-1])
model.save(f"{folder.name}/bpr.keras")
