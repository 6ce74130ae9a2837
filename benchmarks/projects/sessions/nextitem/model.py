import tensorflow as tf


def build(items, length, dim=32):
    inputs = tf.keras.Input((length,), dtype="int64")
    x = tf.keras.layers.Embedding(items + 1, dim, mask_zero=True)(inputs)
    x = tf.keras.layers.GRU(48)(x)
    outputs = tf.keras.layers.Dense(items + 1)(x)
    return tf.keras.Model(inputs, outputs)
