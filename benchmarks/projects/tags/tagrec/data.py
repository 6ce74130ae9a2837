"""Ratings with tags from CSV files, featurised in Python."""

import csv
import hashlib
import os
import random

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


class Ratings:
    def __init__(self, path, shuffle):
        with open(path, newline="") as file:
            self.rows = list(csv.reader(file))
        self.shuffle = shuffle

    def examples(self):
        order = list(range(len(self.rows)))
        if self.shuffle:
            random.shuffle(order)
        for index in order:
            user, item, tags, stars = self.rows[index]
            ids = [bucket(tag) + 1 for tag in tags.split("|")][:MAX_TAGS]
            ids += [0] * (MAX_TAGS - len(ids))
            yield {"user": int(user), "item": int(item), "tags": ids}, float(stars)


def dataset(path, batch_size, training=False):
    ratings = Ratings(path, shuffle=training)
    ds = tf.data.Dataset.from_generator(
        ratings.examples,
        output_types=({"user": tf.int64, "item": tf.int64, "tags": tf.int64}, tf.float32),
        output_shapes=({"user": (), "item": (), "tags": (MAX_TAGS,)}, ()),
    )
    if training:
        ds = ds.repeat()
    return ds.batch(batch_size).prefetch(tf.data.AUTOTUNE)
