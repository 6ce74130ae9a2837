"""Sequence tagger with a custom loop; each batch is padded to its own longest sentence."""

import numpy as np
import tensorflow as tf

VOCAB, TAGS, EPOCHS, BATCH = 5000, 12, 3, 16
rng = np.random.default_rng(2)
lengths = rng.integers(8, 120, 2000)
sentences = [rng.integers(1, VOCAB, n) for n in lengths]
tags = [s % TAGS for s in sentences]

model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(VOCAB, 48),
        tf.keras.layers.Bidirectional(tf.keras.layers.GRU(32, return_sequences=True)),
        tf.keras.layers.Dense(TAGS),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


@tf.function
def train_step(x, y, mask):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_sum(loss_fn(y, logits) * mask) / tf.reduce_sum(mask)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss


def batches():
    order = rng.permutation(len(sentences))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        width = max(len(sentences[r]) for r in rows)
        x = np.zeros((BATCH, width), "int32")
        y = np.zeros((BATCH, width), "int32")
        for i, r in enumerate(rows):
            x[i, : len(sentences[r])] = sentences[r]
            y[i, : len(tags[r])] = tags[r]
        yield tf.constant(x), tf.constant(y), tf.constant((x > 0).astype("float32"))


for epoch in range(EPOCHS):
    losses = []
    for x, y, mask in batches():
        losses.append(train_step(x, y, mask))  # pipediag: loop
    print(f"epoch {epoch} loss {np.mean([loss.numpy() for loss in losses]):.4f}", flush=True)
