"""A custom loop that draws its batches with `next(iterator)`, a fixed number of steps.

The optimizer and the layers are Keras', the loop is not. The matrix products are the work.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 256
STEPS = 1500

rng = np.random.default_rng(53)
features = rng.standard_normal((12_800, FEATURES), dtype=np.float32)
labels = rng.integers(0, 10, size=12_800)
dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(12_800).repeat().batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10),
    ]
)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.01)
optimizer.build(model.trainable_variables)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


iterator = iter(dataset)  # pipediag: loop
for step in range(STEPS):
    x, y = next(iterator)  # pipediag: loop
    loss = train_step(x, y)
    if step % 250 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
