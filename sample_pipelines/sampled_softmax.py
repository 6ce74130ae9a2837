"""Predict a word from the words around it, with the softmax of a few hundred drawn words.

The vocabulary is as large as it would be for a full softmax. Rows of the weights are gathered for
the right words and the drawn ones alone, and with SGD these rows alone are written.
"""

import numpy as np
import tensorflow as tf

VOCABULARY = 30_000
DIMENSION = 64
CONTEXT = 4
DRAWN = 512

rng = np.random.default_rng(52)
contexts = (rng.zipf(1.2, size=(25_600, CONTEXT)) % VOCABULARY).astype("int64")
dataset = tf.data.Dataset.from_tensor_slices((contexts, contexts[:, :1])).shuffle(4000).batch(128)

table = tf.Variable(tf.random.stateless_uniform([VOCABULARY, DIMENSION], [5, 2], -0.05, 0.05))
weights = tf.Variable(tf.random.stateless_normal([VOCABULARY, DIMENSION], [5, 3], stddev=0.05))
biases = tf.Variable(tf.zeros(VOCABULARY))
RATE = 0.1


@tf.function(reduce_retracing=True)
def train_step(words, targets):
    with tf.GradientTape() as tape:
        vectors = tf.reduce_mean(tf.nn.embedding_lookup(table, words), axis=1)
        losses = tf.nn.sampled_softmax_loss(weights, biases, targets, vectors, DRAWN, VOCABULARY)
        loss = tf.reduce_mean(losses)
    variables = [table, weights, biases]
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.scatter_sub(tf.IndexedSlices(RATE * gradient.values, gradient.indices))
    return loss


for epoch in range(12):
    for words, targets in dataset:  # pipediag: loop
        loss = train_step(words, targets)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
