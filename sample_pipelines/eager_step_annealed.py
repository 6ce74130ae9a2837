"""Near miss: an eager step whose loss has a weight that the loop sets in a dictionary.

A `tf.function` would keep the weight of the step in which it was traced.
"""

import numpy as np
import tensorflow as tf

WORDS = 4000
LENGTH = 32

rng = np.random.default_rng(12)
texts = rng.integers(1, WORDS, (6400, LENGTH)).astype(np.int32)
labels = (texts[:, :4].sum(axis=1) % 2).astype(np.float32)

table = tf.keras.layers.Embedding(WORDS, 32)
encoder = tf.keras.layers.Dense(16)
decoder = tf.keras.layers.Dense(1)
optimizer = tf.keras.optimizers.Adam(1e-3)
loss_of = tf.keras.losses.BinaryCrossentropy(from_logits=True)
dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(6400).batch(32)

step, settings = 0, {}
for epoch in range(6):
    for x, y in dataset:  # pipediag: loop
        settings["weight"] = min(1.0, step / 500)
        with tf.GradientTape() as tape:
            code = encoder(tf.reduce_mean(table(x), axis=1))
            logits = decoder(code)
            loss = loss_of(y, tf.squeeze(logits, -1))
            loss += settings["weight"] * tf.reduce_mean(code**2)
        variables = [*table.variables, *encoder.variables, *decoder.variables]
        gradients = tape.gradient(loss, variables)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        step += 1
    print(f"epoch {epoch}: loss {float(loss):.4f}")
