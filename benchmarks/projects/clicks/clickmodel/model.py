"""Embeddings of the categorical columns and a small tower above them."""

import tensorflow as tf

from clickmodel import config


def build_model(learning_rate):
    inputs = {}
    parts = []
    for name in config.NUMERIC:
        inputs[name] = tf.keras.Input((), name=name)
        parts.append(tf.keras.layers.Reshape((1,))(inputs[name]))
    for name in config.CATEGORICAL:
        inputs[name] = tf.keras.Input((), dtype="int64", name=name)
        table = tf.keras.layers.Embedding(
            config.BUCKETS[name], config.DIMENSION, name=f"{name}_table"
        )
        parts.append(table(inputs[name]))
    x = tf.keras.layers.Concatenate()(parts)
    x = tf.keras.layers.Dense(64, activation="relu")(x)
    x = tf.keras.layers.Dense(32, activation="relu")(x)
    output = tf.keras.layers.Dense(1, activation="sigmoid")(x)
    model = tf.keras.Model(inputs, output)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(learning_rate),
        loss="binary_crossentropy",
        metrics=[tf.keras.metrics.AUC(name="auc")],
    )
    return model
