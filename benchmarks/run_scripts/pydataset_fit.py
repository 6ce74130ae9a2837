"""Batches made in Python by a `keras.utils.PyDataset`."""

import clock
import keras
import numpy as np
from clock.fits import FitClock

clock.run.imported()

rng = np.random.default_rng(12)


class Windows(keras.utils.PyDataset):
    """Windows out of a long series, normalised one by one."""

    def __init__(self, series, length, batch_size):
        super().__init__(workers=1)
        self.series, self.length, self.batch_size = series, length, batch_size

    def __len__(self):
        return 100

    def __getitem__(self, index):
        begins = rng.integers(0, len(self.series) - self.length - 1, size=self.batch_size)
        windows = [self.normalized(self.series[n : n + self.length]) for n in begins]
        return np.stack(windows), self.series[begins + self.length, :1]

    @staticmethod
    def normalized(window):
        return (window - window.mean(axis=0)) / (window.std(axis=0) + 1e-6)


series = rng.normal(size=(20_000, 8)).cumsum(axis=0).astype("float32")
model = keras.Sequential(
    [
        keras.Input(shape=(96, 8)),
        keras.layers.Conv1D(32, 5, activation="relu"),
        keras.layers.Conv1D(32, 5, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.fit(Windows(series, 96, 64), epochs=9, verbose=0, callbacks=[FitClock(clock.run)])
