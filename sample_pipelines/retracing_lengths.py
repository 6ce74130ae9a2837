"""An own training loop whose batches are padded to the longest sentence of each.

The step is a `tf.function`, which is traced again for each new length; `reduce_retracing=True`
makes two traces serve all of them.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, SENTENCES = 8_000, 12_800

rng = np.random.default_rng(80)
sentences = [
    rng.integers(1, WORDS, size).astype("int32") for size in 3 + rng.geometric(0.12, SENTENCES)
]
labels = rng.integers(0, 2, SENTENCES).astype("float32")
rows = tf.data.Dataset.from_tensor_slices((tf.ragged.constant(sentences), labels))
dataset = (
    rows.map(lambda ids, label: (ids, label), num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .shuffle(SENTENCES)
    .padded_batch(32, padded_shapes=([None], []))
    .prefetch(tf.data.AUTOTUNE)
)
model = keras.Sequential(
    [
        keras.layers.Embedding(WORDS, 64),
        keras.layers.Conv1D(64, 3, padding="same", activation="relu"),
        keras.layers.Conv1D(64, 3, padding="same", activation="relu"),
        keras.layers.GlobalMaxPooling1D(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
)
optimizer = keras.optimizers.Adam(1e-3)
loss_of = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def train_step(ids, targets):  # pipediag: step
    with tf.GradientTape() as tape:
        loss = loss_of(targets[:, tf.newaxis], model(ids, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(3):
    for ids, targets in dataset:  # pipediag: loop
        loss = train_step(ids, targets)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
