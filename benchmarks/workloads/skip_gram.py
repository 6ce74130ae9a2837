"""Word2Vec with skip-grams cut out of the text by windows, and negatives drawn in the pipeline."""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY, RADIUS, NEGATIVES, BATCH = 4000, 2, 4, 256
rng = np.random.default_rng(205)
text = tf.constant(np.minimum(rng.zipf(1.2, size=24_000), VOCABULARY) - 1, dtype=tf.int64)


def whole(window):
    return window.batch(2 * RADIUS + 1, drop_remainder=True)


def pairs(words):
    center = tf.fill([2 * RADIUS], words[RADIUS])
    context = tf.concat([words[:RADIUS], words[RADIUS + 1 :]], axis=0)
    return tf.data.Dataset.from_tensor_slices((center, context))


def with_negatives(center, context):
    drawn = tf.random.uniform([NEGATIVES], 0, VOCABULARY, dtype=tf.int64)
    candidates = tf.concat([context[tf.newaxis], drawn], axis=0)
    return (center, candidates), tf.constant([1.0] + [0.0] * NEGATIVES)


dataset = tf.data.Dataset.from_tensor_slices(text)
dataset = dataset.window(2 * RADIUS + 1, shift=1, drop_remainder=True)
dataset = dataset.flat_map(whole)
dataset = dataset.flat_map(pairs)
dataset = dataset.shuffle(4096)
dataset = dataset.map(with_negatives)
dataset = dataset.batch(BATCH, drop_remainder=True)

center = keras.Input(shape=(), dtype="int64")
candidates = keras.Input(shape=(1 + NEGATIVES,), dtype="int64")
target = keras.layers.Embedding(VOCABULARY, 32)(center)
others = keras.layers.Embedding(VOCABULARY, 32)(candidates)
logits = keras.layers.Dot(axes=(2, 1))([others, target])
model = keras.Model([center, candidates], logits)
model.compile(optimizer="sgd", loss=keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(dataset, epochs=1000, verbose=2)
