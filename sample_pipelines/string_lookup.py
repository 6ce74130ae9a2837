"""Tokenising and looking up words for one sentence at a time, in a `map` left serial.

A lookup in a hash table is stateful in TensorFlow's eyes, so tf.data does not run this `map`
in parallel by itself, unlike a pure one. Here `num_parallel_calls` is real advice.
"""

import keras
import numpy as np
import tensorflow as tf

LENGTH = 48
WORDS = [f"word{number}" for number in range(2000)]

rng = np.random.default_rng(21)
sentences = [
    " ".join(WORDS[number] for number in row)
    for row in rng.integers(0, 2000, size=(12_800, LENGTH))
]
labels = rng.integers(0, 2, size=12_800).astype("float32")

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(1, len(WORDS) + 1)), default_value=0
)


def encode(sentence, label):
    cleaned = tf.strings.regex_replace(tf.strings.lower(sentence), r"[^a-z0-9 ]", "")
    tokens = vocabulary.lookup(tf.strings.split(cleaned))
    return tf.ensure_shape(tokens[:LENGTH], [LENGTH]), label


dataset = tf.data.Dataset.from_tensor_slices((sentences, labels))
dataset = dataset.shuffle(12_800)
dataset = dataset.map(encode)  # pipediag: culprit
dataset = dataset.batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(len(WORDS) + 1, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
