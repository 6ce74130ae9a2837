"""A ranking model with a mean over the history."""

import tensorflow as tf


def build(users=30_000, items=20_000, dim=24):
    user = tf.keras.Input((), dtype="int64", name="user")
    item = tf.keras.Input((), dtype="int64", name="item")
    history = tf.keras.Input((20,), dtype="int64", name="history")
    context = tf.keras.Input((8,), name="context")
    item_table = tf.keras.layers.Embedding(items, dim, name="items")
    u = tf.keras.layers.Embedding(users, dim, name="users")(user)
    i = item_table(item)
    h = tf.keras.layers.GlobalAveragePooling1D()(item_table(history))
    x = tf.keras.layers.Concatenate()([u, i, h, context])
    x = tf.keras.layers.Dense(48, activation="relu")(x)
    out = tf.keras.layers.Dense(1)(x)
    return tf.keras.Model([user, item, history, context], out)
