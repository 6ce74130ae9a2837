"""A search over learning rates whose loop defines its `tf.function` anew for each of them."""

import keras
import numpy as np
import tensorflow as tf

FEATURES, LAYERS, EPOCHS = 32, 12, 4

rng = np.random.default_rng(205)
rows = rng.standard_normal((2048, FEATURES), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1])).batch(64)


def build_model():
    x = inputs = keras.Input((FEATURES,))
    for _ in range(LAYERS):
        x = keras.layers.LayerNormalization()(keras.layers.Dense(64, activation="gelu")(x))
    return keras.Model(inputs, keras.layers.Dense(1)(x))


def make_step(model, optimizer):
    @tf.function  # pipediag: function
    def train_step(x, y):  # pipediag: function
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return train_step


errors = {}
for rate in (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, 0.00003):
    train_step = make_step(build_model(), keras.optimizers.Adam(rate))
    for _epoch in range(EPOCHS):
        for x, y in dataset:  # pipediag: loop
            loss = train_step(x, y)
    errors[rate] = float(loss)
print(min(errors, key=errors.get), errors)
