"""Near miss of `negatives_drawn_each.py`: the negatives of a hundred batches in one call.

The weights are added up once for 3,200 pairs, which costs nearly nothing per pair.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, PAIRS, NEGATIVES, BATCH = 40_000, 32_000, 5, 32

rng = np.random.default_rng(47)
weights = 1 / np.arange(1, WORDS + 1) ** 0.75
weights /= weights.sum()
targets = rng.choice(WORDS, PAIRS, p=weights)
contexts = rng.choice(WORDS, PAIRS, p=weights)
labels = np.eye(1, NEGATIVES + 1, dtype="float32").repeat(BATCH, axis=0)


def batches():
    drawn = np.random.default_rng()
    for start in range(0, PAIRS, 100 * BATCH):
        rows = slice(start, start + 100 * BATCH)
        negatives = drawn.choice(WORDS, (100 * BATCH, NEGATIVES), p=weights)
        candidates = np.column_stack([contexts[rows], negatives])
        for row in range(0, 100 * BATCH, BATCH):
            yield (targets[rows][row : row + BATCH], candidates[row : row + BATCH]), labels


signature = (
    (tf.TensorSpec((BATCH,), tf.int64), tf.TensorSpec((BATCH, NEGATIVES + 1), tf.int64)),
    tf.TensorSpec((BATCH, NEGATIVES + 1), tf.float32),
)
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)

word, candidates = keras.Input((), dtype="int64"), keras.Input((NEGATIVES + 1,), dtype="int64")
left = keras.layers.Embedding(WORDS, 16)(word)
right = keras.layers.Embedding(WORDS, 16)(candidates)
model = keras.Model([word, candidates], keras.layers.Dot(axes=(2, 1))([right, left]))
loss = keras.losses.BinaryCrossentropy(from_logits=True)
model.compile(optimizer="sgd", loss=loss)
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
