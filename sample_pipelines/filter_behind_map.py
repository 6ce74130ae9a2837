"""Histories of shoppers weighed by a costly function, most of which a filter then drops.

The filter looks at the label alone, and the function leaves that as it is: above the `map` the
filter would spare its work on three of four shoppers.
"""

import keras
import numpy as np
import tensorflow as tf

SHOPPERS, VIEWS, ITEMS = 40_000, 512, 5_000

rng = np.random.default_rng(93)
items = rng.integers(0, ITEMS, size=(SHOPPERS, VIEWS), dtype=np.int32)
days = rng.uniform(0, 30, size=(SHOPPERS, VIEWS)).astype("float32")
bought = rng.integers(0, 2, size=SHOPPERS).astype("float32")
bought[rng.random(SHOPPERS) < 0.75] = -1  # not known


def weigh(history, label):
    """A view weighs the less, the more others lie near it in time."""
    viewed, at = history
    near = tf.exp(-tf.abs(at[:, None] - at[None, :]))
    return (viewed, 1.0 / tf.reduce_sum(near, axis=1)), label


def is_labelled(_history, label):
    return label >= 0


dataset = tf.data.Dataset.from_tensor_slices(((items, days), bought))
dataset = dataset.map(weigh)  # pipediag: map
dataset = dataset.filter(is_labelled)  # pipediag: culprit
dataset = dataset.batch(32)

viewed = keras.Input(shape=(VIEWS,), dtype="int32")
weights = keras.Input(shape=(VIEWS,))
vectors = keras.layers.Embedding(ITEMS, 16)(viewed)
taste = keras.layers.Dot(axes=1)([weights, vectors])
model = keras.Model([viewed, weights], keras.layers.Dense(1, activation="sigmoid")(taste))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1, verbose=2)  # pipediag: loop
