"""A loop of its own whose validation, batch by batch and not compiled, outlasts its training."""

import keras
import numpy as np
import tensorflow as tf

EPOCHS = 10

rng = np.random.default_rng(210)
features = rng.standard_normal((20_000, 32), dtype=np.float32)
targets = np.tanh(features[:, :1])
training = tf.data.Dataset.from_tensor_slices((features[:8000], targets[:8000])).batch(100)
validation = tf.data.Dataset.from_tensor_slices((features[8000:], targets[8000:])).batch(32)

dense = [keras.layers.Dense(128, activation="relu") for _ in range(3)]
model = keras.Sequential([keras.Input((32,)), *dense, keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)


for epoch in range(EPOCHS):
    for x, y in training:  # pipediag: loop
        train_step(x, y)
    errors = []
    for x, y in validation:  # pipediag: validation
        errors.append(float(tf.reduce_mean(tf.square(model(x, training=False) - y))))
    print(f"epoch {epoch}: error {np.mean(errors):.4f}")
