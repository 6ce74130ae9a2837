"""A training step without tf.function, and the loss printed now and then."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.loops import LoopClock

clock.run.imported()

rng = np.random.default_rng(15)
rows = rng.normal(size=(6400, 32)).astype("float32")
labels = rng.integers(0, 4, size=6400)
dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).shuffle(6400).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(32,)),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(128, activation="relu"),
        keras.layers.Dense(4),
    ]
)
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

own = LoopClock(clock.run)
for epoch in range(5):
    own.epoch_begins()
    for step, (batch, targets) in enumerate(dataset):
        own.batch_in_hand()
        with tf.GradientTape() as tape:
            loss = loss_of(targets, model(batch, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        if step % 50 == 0:
            print(f"epoch {epoch}, step {step}: {loss.numpy():.3f}")
        own.step_over()
    own.epoch_over()
own.over()
