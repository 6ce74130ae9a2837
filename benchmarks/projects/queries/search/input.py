"""Input pipelines of training and validation."""

import glob
import os

import tensorflow as tf

from search.features import QUERY_LENGTH, TITLE_LENGTH, parse_line


def _parse(line):
    query, title, age, clicked = tf.numpy_function(
        parse_line, [line], [tf.int32, tf.int32, tf.int32, tf.float32]
    )
    query.set_shape([QUERY_LENGTH])
    title.set_shape([TITLE_LENGTH])
    age.set_shape([])
    clicked.set_shape([])
    return {"query": query, "title": title, "age": age}, clicked


class ClickLog:
    def __init__(self, directory, batch_size):
        self.files = sorted(glob.glob(os.path.join(directory, "*.jsonl")))
        if not self.files:
            raise FileNotFoundError(f"No click log in {directory}")
        self.batch_size = batch_size

    def train(self):
        lines = tf.data.TextLineDataset(self.files[:-1])
        return self._batches(lines.shuffle(5_000))

    def valid(self):
        return self._batches(tf.data.TextLineDataset(self.files[-1:]))

    def _batches(self, lines):
        return (
            lines.map(_parse, num_parallel_calls=tf.data.AUTOTUNE)
            .batch(self.batch_size)
            .prefetch(tf.data.AUTOTUNE)
        )
