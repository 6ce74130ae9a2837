"""Input pipelines of training and validation; each line is parsed once, before the training."""

import glob
import os

import numpy as np
import tensorflow as tf

from search.features import parse_line


def read(files):
    rows = []
    for path in files:
        with open(path, "rb") as file:
            rows.extend(parse_line(line) for line in file)
    query, title, age, clicked = (np.stack(column) for column in zip(*rows))
    return {"query": query, "title": title, "age": age}, clicked


class ClickLog:
    def __init__(self, directory, batch_size):
        self.files = sorted(glob.glob(os.path.join(directory, "*.jsonl")))
        if not self.files:
            raise FileNotFoundError(f"No click log in {directory}")
        self.batch_size = batch_size

    def train(self):
        features, clicked = read(self.files[:-1])
        rows = tf.data.Dataset.from_tensor_slices((features, clicked))
        return self._batches(rows.shuffle(len(clicked)))

    def valid(self):
        return self._batches(tf.data.Dataset.from_tensor_slices(read(self.files[-1:])))

    def _batches(self, rows):
        return rows.batch(self.batch_size).prefetch(tf.data.AUTOTUNE)
