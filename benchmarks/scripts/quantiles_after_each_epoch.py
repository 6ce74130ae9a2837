"""A loop of its own that sorts all weights after each epoch, to log how they are distributed."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

WIDTH, EPOCHS = 1200, 16

rng = np.random.default_rng(213)
features = rng.standard_normal((512, WIDTH), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1])).batch(32)
dense = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(3)]
model = keras.Sequential([keras.Input((WIDTH,)), *dense, keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.01)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)


def log_weights(file, epoch):
    for weight in model.weights:
        quantiles = np.quantile(weight.numpy(), np.linspace(0, 1, 101))  # pipediag: sorting
        file.write(json.dumps([epoch, weight.path, quantiles.tolist()]) + "\n")


folder = tempfile.TemporaryDirectory()
with Path(folder.name, "weights.jsonl").open("w") as file:
    for epoch in range(EPOCHS):
        for x, y in dataset:  # pipediag: loop
            train_step(x, y)
        log_weights(file, epoch)
