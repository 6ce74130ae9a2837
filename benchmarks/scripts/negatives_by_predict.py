"""Two-tower retrieval with hard negatives mined for every batch."""

import numpy as np
from tensorflow import keras

USERS, ITEMS, DIM, BATCH, STEPS = 4000, 3000, 32, 256, 300
rng = np.random.default_rng(9)
u = rng.integers(0, USERS, 120_000).astype("int32")
i = ((u * 7 + rng.integers(0, 50, 120_000)) % ITEMS).astype("int32")


def tower(n):
    return keras.Sequential(
        [
            keras.Input((), dtype="int32"),
            keras.layers.Embedding(n, DIM),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(DIM),
        ]
    )


user_tower, item_tower = tower(USERS), tower(ITEMS)
user_in, item_in = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
score = keras.layers.Dot(1)([user_tower(user_in), item_tower(item_in)])
model = keras.Model([user_in, item_in], score)
model.compile(keras.optimizers.Adam(1e-3), keras.losses.BinaryCrossentropy(from_logits=True))


def hard_negatives(users):
    candidates = rng.integers(0, ITEMS, 512).astype("int32")
    user_vectors = user_tower.predict(users, verbose=0)
    item_vectors = item_tower.predict(candidates, verbose=0)
    return candidates[np.argmax(user_vectors @ item_vectors.T, axis=1)]


for step in range(STEPS):
    rows = rng.integers(0, len(u), BATCH)
    negatives = hard_negatives(u[rows])
    x = [np.concatenate([u[rows], u[rows]]), np.concatenate([i[rows], negatives])]
    y = np.concatenate([np.ones(BATCH), np.zeros(BATCH)]).astype("float32")
    loss = model.train_on_batch(x, y)  # pipediag: loop
    if step % 50 == 0:
        print(step, float(loss), flush=True)
