"""An own training loop whose body makes each step eagerly, as many tutorials do.

The schedule reads a Python number, and the loop reads the loss.
"""

import numpy as np
import tensorflow as tf

WORDS = 4000
LENGTH = 32

rng = np.random.default_rng(11)
texts = rng.integers(1, WORDS, (9600, LENGTH)).astype(np.int32)
labels = (texts[:, :4].sum(axis=1) % 2).astype(np.float32)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(WORDS, 32),
        tf.keras.layers.GlobalAveragePooling1D(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)
schedule = tf.keras.optimizers.schedules.ExponentialDecay(1e-3, 1000, 0.95)
loss_of = tf.keras.losses.BinaryCrossentropy(from_logits=True)
dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(9600).batch(32)

step = 0
for epoch in range(6):
    total = 0.0
    for x, y in dataset:  # pipediag: loop
        smoothing = 0.1 * 0.99**step
        with tf.GradientTape() as tape:  # pipediag: culprit
            logits = model(x, training=True)
            loss = loss_of(y * (1.0 - smoothing), tf.squeeze(logits, -1))
        optimizer.learning_rate.assign(schedule(step))
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients, norm = tf.clip_by_global_norm(gradients, 5.0)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        total += float(loss)
        if step % 100 == 0:
            print(f"step {step}: loss {float(loss):.4f}, gradients {float(norm):.3f}")
        step += 1
    print(f"epoch {epoch}: loss {total / len(dataset):.4f}")
