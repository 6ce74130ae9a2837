"""A GRU that reads a window of letters and guesses the next."""

import keras
from keras import layers


def build(length, letters, units):
    inputs = keras.Input((length,), dtype="int32")
    # An identity table keeps the model that one-hot vectors had.
    table = layers.Embedding(letters, letters, embeddings_initializer="identity", trainable=False)
    hidden = layers.GRU(units)(table(inputs))
    hidden = layers.Dropout(0.1)(hidden)
    return keras.Model(inputs, layers.Dense(letters, activation="softmax")(hidden))
