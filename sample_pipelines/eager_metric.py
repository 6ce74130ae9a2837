"""An own training loop whose step is a `tf.function`, and whose metric is updated eagerly.

`AUC` compares each score with 200 thresholds; each of its operations is started
from Python. The evaluation updates them in a `tf.function`.
"""

import keras
import numpy as np
import tensorflow as tf

ITEMS, EXAMPLES = 5_000, 25_600

rng = np.random.default_rng(82)
pairs = rng.integers(0, ITEMS, (EXAMPLES, 2))
labels = rng.integers(0, 2, EXAMPLES).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((pairs, labels))
train = rows.shuffle(EXAMPLES).batch(64)
test = rows.take(2_000).batch(500)

ids = keras.Input((2,), dtype="int64")
x = keras.layers.Flatten()(keras.layers.Embedding(ITEMS, 32)(ids))
x = keras.layers.Dense(64, activation="relu")(x)
model = keras.Model(ids, keras.layers.Dense(1)(x))
optimizer = keras.optimizers.Adagrad(0.05)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
auc = keras.metrics.AUC(from_logits=True)
tested = keras.metrics.AUC(from_logits=True)


@tf.function
def train_step(batch, targets):
    with tf.GradientTape() as tape:
        scores = model(batch, training=True)
        loss = loss_of(targets[:, tf.newaxis], scores)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss, scores[:, 0]


@tf.function
def test_step(batch, targets):
    tested.update_state(targets, model(batch, training=False)[:, 0])


for epoch in range(6):
    auc.reset_state()
    for batch, targets in train:  # pipediag: loop
        loss, scores = train_step(batch, targets)
        auc.update_state(targets, scores)  # pipediag: update
    tested.reset_state()
    for batch, targets in test:
        test_step(batch, targets)
    print(f"epoch {epoch}: AUC {auc.result():.3f}, tested {tested.result():.3f}")
