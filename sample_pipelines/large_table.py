"""A large embedding table kept in memory: four shards, half precision, only touched rows updated.

The table alone would be 256 MB in single precision. It is split into variables, stored as
float16, and each shard is updated by scatter, so the step does not grow with the table. The
lookups, the dense layers behind them and the scatters are the work.
"""

import numpy as np
import tensorflow as tf

ROWS = 1_000_000
SHARDS = 4
DIMENSION = 64
FIELDS = 16
BATCH = 256
RATE = 0.05

shards = [
    tf.Variable(
        tf.cast(tf.random.stateless_normal([ROWS // SHARDS, DIMENSION], seed=[9, n]), tf.float16),
        name=f"table_{n}",
    )
    for n in range(SHARDS)
]
weights = [
    tf.Variable(tf.random.stateless_normal([FIELDS * DIMENSION, 1024], seed=[9, 10]) * 0.03),
    tf.Variable(tf.random.stateless_normal([1024, 256], seed=[9, 11]) * 0.05),
    tf.Variable(tf.random.stateless_normal([256, 1], seed=[9, 12]) * 0.05),
]

rng = np.random.default_rng(10)
ids = (rng.zipf(1.2, size=(51_200, FIELDS)) % ROWS).astype(np.int64)
clicks = rng.integers(0, 2, size=(51_200, 1)).astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices((ids, clicks))
dataset = dataset.shuffle(8192).batch(BATCH, drop_remainder=True)


def lookup(batch):
    """Rows of the sharded table, with the places and ids that each shard was asked for."""
    flat = tf.reshape(batch, [-1])
    owner = tf.cast(flat % SHARDS, tf.int32)
    places = tf.dynamic_partition(tf.range(tf.size(flat)), owner, SHARDS)
    local = tf.dynamic_partition(flat // SHARDS, owner, SHARDS)
    rows = [tf.gather(shard, index) for shard, index in zip(shards, local, strict=True)]
    return places, local, [tf.cast(row, tf.float32) for row in rows]


@tf.function
def train_step(batch, targets):
    places, local, rows = lookup(batch)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        flat = tf.dynamic_stitch(places, rows)
        hidden = tf.reshape(flat, [BATCH, FIELDS * DIMENSION])
        for weight in weights[:-1]:
            hidden = tf.nn.relu(hidden @ weight)
        logits = hidden @ weights[-1]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(targets, logits))
    row_gradients, gradients = tape.gradient(loss, (rows, weights))
    for shard, index, gradient in zip(shards, local, row_gradients, strict=True):
        shard.scatter_sub(tf.IndexedSlices(tf.cast(RATE * gradient, tf.float16), index))
    for weight, gradient in zip(weights, gradients, strict=True):
        weight.assign_sub(RATE * gradient)
    return loss


for epoch in range(8):
    for batch, targets in dataset:  # pipediag: loop
        loss = train_step(batch, targets)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
