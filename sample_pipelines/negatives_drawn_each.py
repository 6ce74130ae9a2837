"""Skip-gram pairs from a generator that draws the negatives of each pair with `choice(p=)`.

NumPy adds up the weights of all words in each call. With the sums kept, the same numbers come from
a search in them.
"""

import keras
import numpy as np
import tensorflow as tf

WORDS, PAIRS, NEGATIVES, BATCH = 40_000, 3_000, 5, 32

rng = np.random.default_rng(46)
weights = 1 / np.arange(1, WORDS + 1) ** 0.75
weights /= weights.sum()
targets = rng.choice(WORDS, PAIRS, p=weights)
contexts = rng.choice(WORDS, PAIRS, p=weights)


def pairs():
    drawn = np.random.default_rng()
    for target, context in zip(targets, contexts, strict=True):
        negatives = drawn.choice(WORDS, NEGATIVES, p=weights)  # pipediag: culprit
        yield (target, np.append(context, negatives)), np.eye(1, NEGATIVES + 1)[0]


signature = (
    (tf.TensorSpec((), tf.int64), tf.TensorSpec((NEGATIVES + 1,), tf.int64)),
    tf.TensorSpec((NEGATIVES + 1,), tf.float32),
)
dataset = tf.data.Dataset.from_generator(pairs, output_signature=signature)
dataset = dataset.batch(BATCH)

word, candidates = keras.Input((), dtype="int64"), keras.Input((NEGATIVES + 1,), dtype="int64")
left = keras.layers.Embedding(WORDS, 16)(word)
right = keras.layers.Embedding(WORDS, 16)(candidates)
model = keras.Model([word, candidates], keras.layers.Dot(axes=(2, 1))([right, left]))
loss = keras.losses.BinaryCrossentropy(from_logits=True)
model.compile(optimizer="sgd", loss=loss)
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
