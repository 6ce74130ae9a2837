"""Sequences sorted by length: each batch has another shape, and its step is traced anew."""

import keras
import numpy as np
import tensorflow as tf

BATCHES, BATCH, FEATURES, EPOCHS = 40, 16, 12, 4

rng = np.random.default_rng(206)
lengths = np.repeat(np.arange(30, 30 + BATCHES), BATCH)
clips = [rng.standard_normal((length, FEATURES), dtype=np.float32) for length in lengths]
spec = tf.TensorSpec([None, FEATURES])
dataset = tf.data.Dataset.from_generator(lambda: clips, output_signature=spec)
dataset = dataset.padded_batch(BATCH)

layers = [keras.layers.Conv1D(24, 3, padding="same", activation="relu") for _ in range(10)]
head = [keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((None, FEATURES)), *layers, *head])
optimizer = keras.optimizers.Adam()


@tf.function  # pipediag: function
def train_step(x):  # pipediag: function
    with tf.GradientTape() as tape:
        wanted = tf.reduce_mean(x, axis=[1, 2])[:, None]
        loss = tf.reduce_mean(tf.square(model(x, training=True) - wanted))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


for epoch in range(EPOCHS):
    for x in dataset:  # pipediag: loop
        loss = train_step(x)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
