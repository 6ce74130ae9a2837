"""Near miss of `metric_each_step.py`: batches are kept as they are, and the metric comes every
hundredth step.
"""

import keras
import numpy as np
import tensorflow as tf

FIELDS, BUCKETS, BATCH = 12, 1000, 128

rng = np.random.default_rng(4)
offsets = np.arange(FIELDS, dtype="int32") * BUCKETS
ids = rng.integers(0, BUCKETS, (60_000, FIELDS)).astype("int32") + offsets
taste = rng.normal(size=FIELDS * BUCKETS)
clicked = (taste[ids].sum(1) > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((ids, clicked)).shuffle(60_000).batch(BATCH)

model = keras.Sequential(
    [
        keras.Input(shape=(FIELDS,), dtype="int32"),
        keras.layers.Embedding(FIELDS * BUCKETS, 8),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
)
optimizer = keras.optimizers.SGD(0.1)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = tf.squeeze(model(x, training=True), -1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return logits


def area_under_curve(truth, score):
    rank = np.empty(len(score))
    rank[np.argsort(score)] = np.arange(1, len(score) + 1)
    positive = truth.sum()
    pairs = max(positive * (len(truth) - positive), 1)
    return (rank[truth > 0].sum() - positive * (positive + 1) / 2) / pairs


for epoch in range(12):
    truth, score = [], []
    for step, (x, y) in enumerate(dataset):  # pipediag: loop
        logits = train_step(x, y)
        truth.append(y)
        score.append(logits)
        if step % 100 == 99:
            area = area_under_curve(np.concatenate(truth), np.concatenate(score))
    print(f"epoch {epoch}: {area:.4f}")
