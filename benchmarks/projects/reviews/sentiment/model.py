import tensorflow as tf


def build_model(vocabulary, dim):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(vocabulary, dim),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
