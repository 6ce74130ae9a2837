"""A script that profiles itself: `tf.profiler.experimental` around some of its own steps.

Only one profiler can run at a time, and the script's own comes first. The dense layers are
the work.
"""

import tempfile

import keras
import numpy as np
import tensorflow as tf

FEATURES = 256

rng = np.random.default_rng(57)
features = rng.standard_normal((12_800, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(12_800).batch(128)


class ProfileSteps(keras.callbacks.Callback):
    """Profiles the first epoch from its twentieth batch to its eightieth."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory
        self.epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        if self.epoch == 0 and batch == 20:
            tf.profiler.experimental.start(self.directory)  # pipediag: profiler
        if self.epoch == 0 and batch == 80:
            tf.profiler.experimental.stop()


model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
with tempfile.TemporaryDirectory() as directory:
    model.fit(  # pipediag: loop
        dataset, epochs=12, verbose=2, callbacks=[ProfileSteps(directory)]
    )
