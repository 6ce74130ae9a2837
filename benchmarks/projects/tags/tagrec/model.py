from tensorflow import keras

from tagrec.data import MAX_TAGS, TAGS


def build(dim=32):
    user = keras.Input((), dtype="int64", name="user")
    item = keras.Input((), dtype="int64", name="item")
    tags = keras.Input((MAX_TAGS,), dtype="int64", name="tags")
    u = keras.layers.Embedding(5_000, dim)(user)
    i = keras.layers.Embedding(3_000, dim)(item)
    t = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(TAGS + 1, dim)(tags))
    x = keras.layers.Concatenate()([u, i, t])
    x = keras.layers.Dense(64, activation="relu")(x)
    return keras.Model({"user": user, "item": item, "tags": tags}, keras.layers.Dense(1)(x))
