"""A loop of the script's own, with one that evaluates after each epoch."""

import clock
import keras
import numpy as np
import tensorflow as tf
from clock.loops import LoopClock

clock.run.imported()

rng = np.random.default_rng(8)
rows = rng.normal(size=(16_000, 128)).astype("float32")
labels = rng.integers(0, 10, size=16_000)
train = tf.data.Dataset.from_tensor_slices((rows[:9600], labels[:9600])).shuffle(2000).batch(64)
test = tf.data.Dataset.from_tensor_slices((rows[9600:], labels[9600:])).batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(128,)),
        keras.layers.Dense(768, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10),
    ]
)
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(batch, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets, model(batch, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def test_step(batch, targets):
    accuracy.update_state(targets, model(batch, training=False))


own = LoopClock(clock.run)
for epoch in range(16):
    own.epoch_begins()
    for batch, targets in train:
        own.batch_in_hand()
        train_step(batch, targets)
        own.step_over()
    own.epoch_over()
    with clock.run.evaluation():
        accuracy.reset_state()
        for batch, targets in test:
            test_step(batch, targets)
    print(f"epoch {epoch}: {accuracy.result().numpy():.3f}")
own.over()
