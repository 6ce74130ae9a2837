"""Random search of learning rate and dropout for a small tabular classifier, 5-fold each."""

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 30)).astype("float32")
w = rng.normal(size=30)
y = ((X @ w + 0.5 * rng.normal(size=4000)) > 0).astype("float32")
folds = np.arange(len(X)) % 5


def build(lr):
    model = keras.Sequential(
        [
            keras.Input((30,)),
            layers.Dense(64, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(64, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(32, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        keras.optimizers.Adam(lr), "binary_crossentropy", metrics=["accuracy", keras.metrics.AUC()]
    )
    return model


results = {}
for lr in (3e-4, 1e-3, 3e-3):
    scores = []
    for k in range(5):
        train, test = folds != k, folds == k
        model = build(lr)
        model.fit(X[train], y[train], epochs=4, batch_size=64, verbose=0)  # pipediag: loop
        scores.append(model.evaluate(X[test], y[test], verbose=0)[1])
    results[lr] = float(np.mean(scores))
    print(f"lr={lr:g} accuracy={results[lr]:.4f}", flush=True)
print("best", max(results, key=results.get))
