"""Ratings with tags from CSV files, featurised in Python."""

import csv
import hashlib
import os

import numpy as np
import tensorflow as tf

TAGS = 2_000
MAX_TAGS = 6


def bucket(tag):
    return int(hashlib.md5(tag.encode()).hexdigest(), 16) % TAGS


def write(path, rows, seed):
    rng = np.random.default_rng(seed)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        for _ in range(rows):
            tags = "|".join(f"tag{t}" for t in rng.integers(0, 9_000, rng.integers(1, 9)))
            out.writerow([rng.integers(5_000), rng.integers(3_000), tags, rng.integers(1, 6)])


def ensure(directory):
    os.makedirs(directory, exist_ok=True)
    for name, rows, seed in (("train.csv", 40_000, 1), ("valid.csv", 4_000, 2)):
        path = os.path.join(directory, name)
        if not os.path.exists(path):
            write(path, rows, seed)


def featurise(path):
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    tags = np.zeros((len(rows), MAX_TAGS), dtype=np.int64)
    for number, row in enumerate(rows):
        ids = [bucket(tag) + 1 for tag in row[2].split("|")][:MAX_TAGS]
        tags[number, : len(ids)] = ids
    features = {
        "user": np.array([int(row[0]) for row in rows]),
        "item": np.array([int(row[1]) for row in rows]),
        "tags": tags,
    }
    return features, np.array([float(row[3]) for row in rows], dtype=np.float32)


def dataset(path, batch_size, training=False):
    features, stars = featurise(path)
    ds = tf.data.Dataset.from_tensor_slices((features, stars))
    if training:
        ds = ds.shuffle(len(stars)).repeat()
    return ds.batch(batch_size).prefetch(tf.data.AUTOTUNE)
