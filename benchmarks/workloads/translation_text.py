"""Sentence pairs for translation: tiny maps, a filter, buckets by length with group_by_window."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

BATCH, BUCKET, LONGEST, WORDS = 64, 10, 50, 5000


def write_sentences(path, rng):
    with Path(path).open("w", encoding="utf-8") as file:
        for length in np.clip(rng.gamma(3.0, 6.0, size=30_000), 1, 70).astype(int):
            file.write(" ".join(f"w{word}" for word in rng.integers(0, WORDS, size=length)) + "\n")


vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([f"w{n}" for n in range(WORDS)], tf.range(2, WORDS + 2)),
    default_value=1,
)


def bucket(source, target):
    return tf.cast(tf.maximum(tf.size(source), tf.size(target)) // BUCKET, tf.int64)


def padded(_, window):
    return window.padded_batch(BATCH)


with tempfile.TemporaryDirectory() as folder:
    rng = np.random.default_rng(202)
    write_sentences(f"{folder}/source.txt", rng)
    write_sentences(f"{folder}/target.txt", rng)
    source = tf.data.TextLineDataset(f"{folder}/source.txt")
    target = tf.data.TextLineDataset(f"{folder}/target.txt")
    dataset = tf.data.Dataset.zip((source, target))
    dataset = dataset.shuffle(2_000)
    dataset = dataset.map(lambda s, t: (tf.strings.split(s), tf.strings.split(t)))
    dataset = dataset.filter(lambda s, t: tf.size(s) < LONGEST and tf.size(t) < LONGEST)
    dataset = dataset.map(lambda s, t: (vocabulary.lookup(s), vocabulary.lookup(t)))
    dataset = dataset.group_by_window(bucket, padded, window_size=BATCH)
    dataset = dataset.map(lambda s, t: (s, tf.cast(tf.reduce_sum(t, axis=1) % 2, tf.float32)))

    model = keras.Sequential(
        [
            keras.Input(shape=(None,), dtype="int32"),
            keras.layers.Embedding(WORDS + 2, 32),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)
