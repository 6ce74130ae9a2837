"""A `tf.function` that loops over the dataset inside the graph: one Python call is an epoch.

There is no Python between two steps and no iterator that Python could see. The tokens of each
sentence are split and hashed one sentence at a time, and that is what the steps wait for.
"""

import numpy as np
import tensorflow as tf

LENGTH = 48
BUCKETS = 1024

rng = np.random.default_rng(55)
sentences = [" ".join(row) for row in rng.integers(0, 9999, size=(6400, LENGTH)).astype(str)]
targets = rng.standard_normal((6400, 1)).astype("float32")


def noisy_counts(sentence, target):
    tokens = tf.strings.split(tf.strings.lower(sentence))
    kept = tf.random.shuffle(tokens)[: LENGTH // 2]
    buckets = tf.strings.to_hash_bucket_fast(kept, BUCKETS)
    return tf.reduce_sum(tf.one_hot(buckets, BUCKETS), axis=0), target


dataset = tf.data.Dataset.from_tensor_slices((sentences, targets))
dataset = dataset.map(noisy_counts)  # pipediag: culprit
dataset = dataset.batch(64)

weights = tf.Variable(tf.zeros([BUCKETS, 1]))


@tf.function
def train_epoch(batches):
    loss = tf.constant(0.0)
    for x, y in batches:  # pipediag: loop
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ weights - y))
        weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for epoch in range(20):
    loss = train_epoch(dataset)  # pipediag: loop
    print(f"epoch {epoch}: loss {float(loss):.4f}")
