"""A callback that scores all rows after each epoch, to rank them by hand."""

import keras
import numpy as np

EPOCHS = 15

rng = np.random.default_rng(209)
features = rng.standard_normal((36_000, 48), dtype=np.float32)
labels = (features[:, :2].sum(axis=1) > 0).astype("float32")


class AreaUnderCurve(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        scores = self.model.predict(features, verbose=0)  # pipediag: scoring
        order = scores[:, 0].argsort().argsort()
        positives = int(labels.sum())
        pairs = positives * (len(labels) - positives)
        above = order[labels > 0].sum() - positives * (positives - 1) / 2
        print(f"area under the curve {above / pairs:.4f}")


dense = [keras.layers.Dense(256, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input((48,)), *dense, keras.layers.Dense(1, "sigmoid")])
model.compile(optimizer="adam", loss="binary_crossentropy")
callbacks = [AreaUnderCurve()]
model.fit(features[:4096], labels[:4096], 64, EPOCHS, 2, callbacks)  # pipediag: loop
