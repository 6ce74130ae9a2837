"""A callback that ranks all items for one user after another with `predict`.

Each call makes a dataset and an iterator for 500 rows; `predict_on_batch` runs the model alone.
"""

import keras
import numpy as np
import tensorflow as tf

USERS, ITEMS = 2_000, 500

rng = np.random.default_rng(45)
users = rng.integers(0, USERS, 40_000)
items = (users * 3 + rng.integers(0, 7, 40_000)) % ITEMS


class HitRate(keras.callbacks.Callback):
    """The share of users whose own item is among the best ten."""

    def on_epoch_end(self, epoch, logs=None):
        every_item = np.arange(ITEMS)
        hits = 0
        for user in range(120):
            pair = [np.full(ITEMS, user), every_item]
            scores = self.model.predict(pair, verbose=0)  # pipediag: predict
            hits += user * 3 % ITEMS in np.argsort(-scores[:, 0])[:10]
        print(f"hit rate {hits / 120:.3f}")


user, item = keras.Input((), dtype="int64"), keras.Input((), dtype="int64")
towers = [keras.layers.Embedding(USERS, 16)(user), keras.layers.Embedding(ITEMS, 16)(item)]
score = keras.layers.Dot(axes=1)(towers)
model = keras.Model([user, item], keras.layers.Activation("sigmoid")(score))
model.compile(optimizer="sgd", loss="binary_crossentropy")
dataset = tf.data.Dataset.from_tensor_slices(((users, items), np.ones(40_000, "float32")))
dataset = dataset.shuffle(40_000).batch(128)
model.fit(dataset, epochs=5, verbose=2, callbacks=[HitRate()])  # pipediag: loop
