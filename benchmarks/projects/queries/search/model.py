"""Two towers over bags of words, and a head over their product."""

import keras
from keras import layers

from search.features import BUCKETS, QUERY_LENGTH, TITLE_LENGTH


class Bag(layers.Layer):
    """Mean of the embeddings of a text, without its padding."""

    def __init__(self, table, **kwargs):
        super().__init__(**kwargs)
        self.table = table

    def call(self, ids):
        there = keras.ops.cast(ids > 0, "float32")[..., None]
        total = keras.ops.sum(self.table(ids) * there, axis=1)
        return total / keras.ops.maximum(keras.ops.sum(there, axis=1), 1.0)


def click_model(dim):
    query = keras.Input((QUERY_LENGTH,), dtype="int32", name="query")
    title = keras.Input((TITLE_LENGTH,), dtype="int32", name="title")
    age = keras.Input((), dtype="int32", name="age")
    table = layers.Embedding(BUCKETS + 1, dim)
    bag = Bag(table)
    q, t = bag(query), bag(title)
    together = layers.Concatenate()([q, t, q * t, layers.Embedding(10, 4)(age)])
    hidden = layers.Dense(64, activation="relu")(together)
    out = layers.Dense(1, activation="sigmoid")(hidden)
    return keras.Model({"query": query, "title": title, "age": age}, out)
