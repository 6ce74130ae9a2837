"""A callback that goes through the validation data by itself, and predicts each batch.

The loop in the callback is none of the training's: it evaluates, and `predict` on 16 rows takes
longer than the training of an epoch.
"""

import keras
import numpy as np
import tensorflow as tf

ROWS = 8_000

rng = np.random.default_rng(46)
rows = rng.normal(size=(ROWS, 16)).astype("float32")
labels = (rows.sum(axis=1) > 0).astype("float32")
training = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(ROWS).batch(32)
validation = tf.data.Dataset.from_tensor_slices((rows[:1_600], labels[:1_600])).batch(16)


class Accuracy(keras.callbacks.Callback):
    """The share of the validation data that is classified correctly."""

    def on_epoch_end(self, epoch, logs=None):
        correct = 0
        for features, expected in validation:
            scores = self.model.predict(features, verbose=0)  # pipediag: predict
            correct += int(((scores[:, 0] > 0.5) == (expected.numpy() > 0.5)).sum())
        print(f"accuracy {correct / 1_600:.3f}")


model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy")
model.fit(training, epochs=6, verbose=2, callbacks=[Accuracy()])  # pipediag: loop
