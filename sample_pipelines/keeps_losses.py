"""Near miss of `keeps_predictions`: the list keeps one number of each step."""

import keras
import numpy as np
import tensorflow as tf

CLASSES, EXAMPLES = 1_000, 1_024

rng = np.random.default_rng(90)
features = rng.normal(size=(EXAMPLES, 32)).astype(np.float32)
labels = rng.integers(0, CLASSES, EXAMPLES)
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(EXAMPLES).batch(64)

model = keras.Sequential([keras.layers.Dense(64, "relu"), keras.layers.Dense(CLASSES)])
optimizer = keras.optimizers.SGD(0.1)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(features, labels):
    with tf.GradientTape() as tape:
        predictions = model(features, training=True)
        loss = loss_of(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss, predictions


kept = []
for epoch in range(200):
    for batch in dataset:  # pipediag: loop
        loss, _ = train_step(*batch)
        kept.append(float(loss))
    print(f"epoch {epoch}: loss {np.mean(kept[-16:]):.4f}")
