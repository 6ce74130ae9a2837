"""Cedar's text pipeline: lines, a tokenizer in Python, truncation, and the embedding lookup.

The lookup turns each token of four bytes into a vector of 764 numbers inside the pipeline.
"""

import re
import tempfile
import zlib
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

VOCABULARY, DIMENSION, LONGEST = 50_257, 764, 254
PIECE = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")


def write_lines(path):
    rng = np.random.default_rng(203)
    words = ["".join(rng.choice(list("abcdefghij"), size=n)) for n in rng.integers(2, 9, size=4000)]
    with Path(path).open("w", encoding="utf-8") as file:
        for length in rng.integers(40, 300, size=1600):
            file.write(" ".join(rng.choice(words, size=length)) + " .\n")


def tokenize(line):
    pieces = PIECE.findall(line.numpy().decode().lower())
    return np.array([zlib.crc32(piece.encode()) % VOCABULARY for piece in pieces], dtype=np.int32)


def tokens(line):
    return tf.ensure_shape(tf.py_function(tokenize, [line], tf.int32), [None])


def truncate(ids):
    ids = ids[:LONGEST]
    return tf.ensure_shape(tf.pad(ids, [[0, LONGEST - tf.size(ids)]]), [LONGEST])


table = tf.random.stateless_normal([VOCABULARY, DIMENSION], seed=(1, 2))


def embed(ids):
    return tf.nn.embedding_lookup(table, ids), tf.cast(ids[:1] % 2, tf.float32)


with tempfile.TemporaryDirectory() as folder:
    write_lines(f"{folder}/wiki.txt")
    dataset = tf.data.TextLineDataset(f"{folder}/wiki.txt")
    dataset = dataset.map(tokens)
    dataset = dataset.map(truncate)
    dataset = dataset.map(embed)
    dataset = dataset.batch(16)

    model = keras.Sequential(
        [
            keras.Input(shape=(LONGEST, DIMENSION)),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)
