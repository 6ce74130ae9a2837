"""Near miss: a filter behind the same `map` that looks at the weights which the `map` works out.

It drops as much. Above the `map` it would look at days, and drop none.
"""

import keras
import numpy as np
import tensorflow as tf

SHOPPERS, VIEWS, ITEMS = 40_000, 512, 5_000

rng = np.random.default_rng(93)
items = rng.integers(0, ITEMS, size=(SHOPPERS, VIEWS), dtype=np.int32)
spans = rng.uniform(1, 30, size=(SHOPPERS, 1))
days = (spans * rng.random((SHOPPERS, VIEWS))).astype("float32")
bought = rng.integers(0, 2, size=SHOPPERS).astype("float32")


def weigh(history, label):
    """A view weighs the less, the more others lie near it in time."""
    viewed, at = history
    near = tf.exp(-tf.abs(at[:, None] - at[None, :]))
    return (viewed, 1.0 / tf.reduce_sum(near, axis=1)), label


def is_spread_out(history, _label):
    _, weights = history
    return tf.reduce_sum(weights) > 12


dataset = tf.data.Dataset.from_tensor_slices(((items, days), bought))
dataset = dataset.map(weigh)  # pipediag: map
dataset = dataset.filter(is_spread_out)  # pipediag: filter
dataset = dataset.batch(32)

viewed = keras.Input(shape=(VIEWS,), dtype="int32")
weights = keras.Input(shape=(VIEWS,))
vectors = keras.layers.Embedding(ITEMS, 16)(viewed)
taste = keras.layers.Dot(axes=1)([weights, vectors])
model = keras.Model([viewed, weights], keras.layers.Dense(1, activation="sigmoid")(taste))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1, verbose=2)  # pipediag: loop
