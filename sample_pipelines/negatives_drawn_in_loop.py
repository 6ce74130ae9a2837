"""Skip-gram steps that a Python generator feeds, which draws with `choice(p=)` for each pair.

There is no tf.data pipeline: the sums of the weights, kept, make the steps themselves shorter.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, PAIRS, NEGATIVES, BATCH = 20_000, 20_000, 5, 32

rng = np.random.default_rng(71)
weights = 1 / np.arange(1, WORDS + 1) ** 0.75
weights /= weights.sum()
targets = rng.choice(WORDS, PAIRS, p=weights)
contexts = rng.choice(WORDS, PAIRS, p=weights)


def negatives():
    return rng.choice(WORDS, NEGATIVES, p=weights)  # pipediag: culprit


def batches():
    for first in range(0, PAIRS, BATCH):
        drawn = np.stack([negatives() for _ in range(BATCH)])
        context = contexts[first : first + BATCH, None]
        yield targets[first : first + BATCH], np.concatenate([context, drawn], axis=1)


words = keras.layers.Embedding(WORDS, 16)
others = keras.layers.Embedding(WORDS, 16)
words.build(None)
others.build(None)
variables = [*words.trainable_variables, *others.trainable_variables]
optimizer = keras.optimizers.SGD(0.1)
optimizer.build(variables)


@tf.function
def train_step(word, candidates):
    with tf.GradientTape() as tape:
        scores = tf.einsum("bd,bnd->bn", words(word), others(candidates))
        is_context = tf.one_hot(tf.zeros_like(word), NEGATIVES + 1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(is_context, scores)
        loss = tf.reduce_mean(losses)
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss


for epoch in range(8):
    for word, candidates in batches():
        loss = train_step(tf.constant(word), tf.constant(candidates))  # pipediag: loop
    print(f"epoch {epoch}: {float(loss):.3f}")
