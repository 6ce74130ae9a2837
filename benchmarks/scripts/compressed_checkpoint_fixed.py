"""`compressed_checkpoint.py` with every fifth epoch's weights, uncompressed."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

FEATURES, WIDTH, EPOCHS = 256, 1024, 80

rng = np.random.default_rng(73)
features = rng.standard_normal((256, FEATURES), dtype=np.float32)
targets = (features[:, :1] > 0).astype("float32")


class WeightHistory(keras.callbacks.Callback):
    """Keeps the weights of every fifth epoch, to look at their paths later."""

    def __init__(self, folder):
        super().__init__()
        self.folder = Path(folder)

    def on_epoch_end(self, epoch, logs=None):
        if epoch % 5 == 4:
            weights = {weight.path: weight.numpy() for weight in self.model.weights}
            np.savez(self.folder / f"epoch_{epoch:03d}.npz", **weights)


dataset = tf.data.Dataset.from_tensor_slices((features, targets)).shuffle(256).batch(32)
layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(3)]
outputs = keras.layers.Dense(1, activation="sigmoid")
model = keras.Sequential([keras.Input(shape=(FEATURES,)), *layers, outputs])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
with tempfile.TemporaryDirectory() as folder:
    history = WeightHistory(folder)
    model.fit(dataset, epochs=EPOCHS, callbacks=[history], verbose=2)  # pipediag: loop
