"""A callback that keeps all weights after each epoch, compressed.

Random-looking numbers hardly get smaller, and to try takes longer than the epoch. Uncompressed, or
after every fifth epoch, the files would be written in a moment.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FEATURES, WIDTH, EPOCHS = 256, 1024, 20

rng = np.random.default_rng(73)
features = rng.standard_normal((256, FEATURES), dtype=np.float32)
targets = (features[:, :1] > 0).astype("float32")


class WeightHistory(keras.callbacks.Callback):
    """Keeps the weights of every epoch, to look at their paths later."""

    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def on_epoch_end(self, epoch, logs=None):
        weights = {weight.path: weight.numpy() for weight in self.model.weights}
        np.savez_compressed(  # pipediag: callback
            self.folder / f"epoch_{epoch:03d}.npz", **weights
        )


dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(256).batch(32)
model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(WIDTH, activation="relu"),
        keras.layers.Dense(WIDTH, activation="relu"),
        keras.layers.Dense(WIDTH, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
with tempfile.TemporaryDirectory() as folder:
    history = WeightHistory(folder)
    model.fit(dataset, epochs=EPOCHS, callbacks=[history], verbose=2)  # pipediag: loop
    print(f"{len(list(Path(folder).iterdir()))} sets of weights kept")
