"""A tf.function that walks over the whole dataset: one call is an epoch."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.loops import LoopClock

clock.run.imported()

rng = np.random.default_rng(9)
rows = rng.normal(size=(9600, 128)).astype("float32")
labels = rng.integers(0, 10, size=9600)
dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(128,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_epoch(dataset):
    total = 0.0
    for batch, targets in dataset:
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(batch, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        total += loss
    return total


own = LoopClock(clock.run)
for epoch in range(22):
    own.batch_in_hand()
    total = train_epoch(dataset)
    own.step_over()
    own.epoch_over()
    print(f"epoch {epoch}: {total.numpy():.2f}")
own.over()
