"""A language model that Python feeds, and that writes sentences behind its training loop.

Each word is drawn from an eager call of the model within a method that TensorFlow can't trace.
"""

import numpy as np
import tensorflow as tf

WORDS = 800
LENGTH = 12

rng = np.random.default_rng(7)
text = rng.integers(1, WORDS, 60_000).astype(np.int32)


class Writer(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.table = tf.keras.layers.Embedding(WORDS, 64)
        self.hidden = [tf.keras.layers.Dense(64, activation="relu") for _ in range(12)]
        self.scores = tf.keras.layers.Dense(WORDS)

    def call(self, ids):
        x = tf.reduce_mean(self.table(ids), axis=1)
        for layer in self.hidden:
            x = x + layer(x)
        return self.scores(x)

    def next_word(self, ids, temperature):
        logits = self(ids)  # pipediag: call
        chances = tf.nn.softmax(logits / temperature).numpy()[0].astype("float64")
        return rng.choice(WORDS, p=chances / chances.sum())


def batch(size):
    starts = rng.integers(0, len(text) - LENGTH, size)
    return np.stack([text[one : one + LENGTH] for one in starts]), text[starts + LENGTH]


writer = Writer()
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def step(ids, following):
    with tf.GradientTape() as tape:
        logits = writer(ids)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(following, logits)
        loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, writer.trainable_variables)
    optimizer.apply_gradients(zip(gradients, writer.trainable_variables, strict=True))
    return loss


for _ in range(3_000):
    ids, following = batch(32)
    loss = step(ids, following)  # pipediag: loop

for temperature in (0.5, 1.0):
    words = text[:LENGTH]
    for _ in range(500):
        word = writer.next_word(words[None, -LENGTH:], temperature)
        words = np.append(words, np.int32(word))
    print(f"at {temperature}: {words[-5:]}")
