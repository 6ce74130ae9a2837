"""Between short trainings the next examples are chosen by distances taken one by one in Python."""

import keras
import numpy as np

ROUNDS, CHOSEN, FEATURES = 10, 1500, 24

rng = np.random.default_rng(218)
pool = rng.standard_normal((20_000, FEATURES), dtype=np.float32)
targets = np.sin(pool[:, :1])


def farthest(chosen):
    nearest = np.full(len(pool), np.inf, np.float32)
    for number in chosen:
        apart = np.square(pool - pool[number]).sum(axis=1)  # pipediag: choosing
        nearest = np.minimum(nearest, apart)  # pipediag: choosing
    return np.argsort(-nearest)[:CHOSEN]


dense = [keras.layers.Dense(64, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input((FEATURES,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
chosen = np.arange(CHOSEN)
for number in range(ROUNDS):
    fit = {"batch_size": 50, "epochs": 5, "verbose": 0}
    model.fit(pool[chosen], targets[chosen], **fit)  # pipediag: loop
    chosen = farthest(chosen)
    print(f"round {number}: the farthest is {chosen[0]}")
