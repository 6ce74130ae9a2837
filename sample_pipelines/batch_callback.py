"""A callback that takes statistics of every weight after every batch.

Copying the weights out and sorting them in NumPy costs several times the step. Once an
epoch, or every hundredth batch, would do.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 64

rng = np.random.default_rng(44)
features = rng.standard_normal((32_000, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")


class WeightMonitor(keras.callbacks.Callback):
    """Keeps the quartiles of each weight, and of their magnitudes, batch by batch."""

    def __init__(self):
        super().__init__()
        self.history = []

    def on_train_batch_end(self, batch, logs=None):  # pipediag: callback
        quartiles = []
        for weight in self.model.get_weights():
            for values in (weight, np.abs(weight)):
                quartiles.append(np.percentile(values, [25, 50, 75]))  # pipediag: callback
        self.history.append(quartiles)


dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(8000).batch(64)
model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
monitor = WeightMonitor()
model.fit(dataset, epochs=2, verbose=2, callbacks=[monitor])  # pipediag: loop
print(f"{len(monitor.history)} sets of quartiles kept")
