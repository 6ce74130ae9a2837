"""An embedding lookup placed with `tf.device` in a `tf.function`, trained by a custom loop.

The lookup is pinned to a device by hand, as one does for a table that should not move. The
dense layers behind it are the work; the batches are cheap to make.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 5000
DIMENSION = 64
LENGTH = 20
DEVICE = "/GPU:0" if tf.config.list_physical_devices("GPU") else "/CPU:0"

rng = np.random.default_rng(1)
words = rng.integers(0, VOCABULARY, size=(20_000, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(20_000, 1)).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((words, labels))
dataset = dataset.shuffle(20_000).batch(128, drop_remainder=True)

table = tf.Variable(tf.random.stateless_normal([VOCABULARY, DIMENSION], seed=[1, 2]))
head = keras.Sequential(
    [
        keras.Input(shape=(LENGTH * DIMENSION,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1),
    ]
)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.05)


@tf.function
def embed(batch):
    with tf.device(DEVICE):
        vectors = tf.nn.embedding_lookup(table, batch)
    return tf.reshape(vectors, [-1, LENGTH * DIMENSION])


@tf.function
def train_step(batch, targets):
    with tf.GradientTape() as tape:
        loss = loss_of(targets, head(embed(batch), training=True))
    variables = [table, *head.trainable_variables]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for epoch in range(15):
    for batch, targets in dataset:  # pipediag: loop
        loss = train_step(batch, targets)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
