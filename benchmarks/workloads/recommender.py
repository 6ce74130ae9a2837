"""A recommender on lines as in the Criteo data: a label, 13 numbers and 26 categories as text."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

NUMBERS, CATEGORIES, BUCKETS, BATCH = 13, 26, 1000, 256
DEFAULTS = [0.0] * (1 + NUMBERS) + [""] * CATEGORIES


def write_lines(path):
    rng = np.random.default_rng(206)
    with Path(path).open("w", encoding="utf-8") as file:
        for _ in range(12_800):
            numbers = [str(number) for number in rng.integers(0, 500, size=NUMBERS)]
            categories = [f"{value:08x}" for value in rng.integers(0, 5000, size=CATEGORIES)]
            file.write("\t".join([str(rng.integers(2)), *numbers, *categories]) + "\n")


def parse(line):
    fields = tf.io.decode_csv(line, DEFAULTS, field_delim="\t")
    return fields[0], tf.stack(fields[1 : 1 + NUMBERS]), tf.stack(fields[1 + NUMBERS :])


def features(label, numbers, categories):
    ids = tf.strings.to_hash_bucket_fast(categories, BUCKETS)
    return (tf.math.log1p(numbers), ids + tf.range(CATEGORIES, dtype=tf.int64) * BUCKETS), label


with tempfile.TemporaryDirectory() as folder:
    write_lines(f"{folder}/day.tsv")
    dataset = tf.data.TextLineDataset(f"{folder}/day.tsv")
    dataset = dataset.shuffle(4096)
    dataset = dataset.map(parse)
    dataset = dataset.map(features)
    dataset = dataset.batch(BATCH)

    numbers = keras.Input(shape=(NUMBERS,))
    ids = keras.Input(shape=(CATEGORIES,), dtype="int64")
    embedded = keras.layers.Flatten()(keras.layers.Embedding(CATEGORIES * BUCKETS, 8)(ids))
    hidden = keras.layers.Concatenate()([numbers, embedded])
    hidden = keras.layers.Dense(64, activation="relu")(hidden)
    model = keras.Model([numbers, ids], keras.layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(optimizer="sgd", loss="binary_crossentropy")
    model.fit(dataset, epochs=1000, verbose=2)
