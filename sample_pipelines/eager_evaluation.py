"""An own training loop that evaluates after each epoch by calling the model eagerly on each batch.

The training step is a `tf.function`. The evaluation is none, so that each of its operations is
started from Python.
"""

import keras
import numpy as np
import tensorflow as tf

ITEMS, EXAMPLES = 5_000, 12_800

rng = np.random.default_rng(81)
pairs = rng.integers(0, ITEMS, (2 * EXAMPLES, 2))
labels = rng.integers(0, 2, 2 * EXAMPLES).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((pairs, labels))
train = rows.take(EXAMPLES).shuffle(EXAMPLES).batch(64)
test = rows.skip(EXAMPLES).batch(64)

ids = keras.Input((2,), dtype="int64")
x = keras.layers.Flatten()(keras.layers.Embedding(ITEMS, 32)(ids))
for width in (64, 64, 32):
    x = keras.layers.Dropout(0.1)(keras.layers.Dense(width, activation="relu")(x))
model = keras.Model(ids, keras.layers.Dense(1)(x))
optimizer = keras.optimizers.Adagrad(0.05)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def train_step(batch, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets[:, tf.newaxis], model(batch, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def hits():
    right = 0
    for batch, targets in test:  # pipediag: evaluation
        scores = model(batch, training=False)  # pipediag: call
        right += int(np.sum((scores.numpy()[:, 0] > 0) == (targets.numpy() > 0.5)))
    return right


for epoch in range(8):
    for batch, targets in train:  # pipediag: loop
        loss = train_step(batch, targets)
    print(f"epoch {epoch}: loss {float(loss):.4f}, right {hits() / EXAMPLES:.3f}")
