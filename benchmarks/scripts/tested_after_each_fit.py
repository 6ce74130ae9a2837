"""A loop of its own around `fit`: each round is tested on a set that dwarfs what it trains on."""

import keras
import numpy as np

ROUNDS = 6

rng = np.random.default_rng(208)
features = rng.standard_normal((308_000, 40), dtype=np.float32)
labels = (features[:, :3].sum(axis=1, keepdims=True) > 0).astype("float32")

dense = [keras.layers.Dense(256, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input((40,)), *dense, keras.layers.Dense(1, "sigmoid")])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])

best = 0.0
for number in range(ROUNDS):
    model.fit(features[:8000], labels[:8000], batch_size=50, epochs=1, verbose=0)  # pipediag: loop
    _, accuracy = model.evaluate(features[8000:], labels[8000:], verbose=0)  # pipediag: testing
    best = max(best, accuracy)
    print(f"round {number}: accuracy {accuracy:.3f}, best {best:.3f}")
