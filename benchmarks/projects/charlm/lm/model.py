"""A GRU that reads a window of letters and guesses the next."""

import keras
from keras import layers


def build(length, letters, units):
    inputs = keras.Input((length, letters))
    hidden = layers.GRU(units)(inputs)
    hidden = layers.Dropout(0.1)(hidden)
    return keras.Model(inputs, layers.Dense(letters, activation="softmax")(hidden))
