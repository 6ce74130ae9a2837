"""Input pipeline of the click model."""

import glob
import os

import tensorflow as tf

from clickmodel import config


def parse_line(line):
    """One CSV line into features and a label."""
    values = tf.io.decode_csv(line, record_defaults=config.DEFAULTS)
    row = dict(zip(config.COLUMNS, values))
    label = row.pop("label")
    features = {}
    for name in config.NUMERIC:
        features[name] = tf.math.log1p(row[name])
    for name in config.CATEGORICAL:
        features[name] = tf.strings.to_hash_bucket_fast(row[name], config.BUCKETS[name])
    return features, label


def read_shard(path):
    return tf.data.TextLineDataset(path).skip(1)


def make_dataset(pattern, batch_size, training=True):
    files = sorted(glob.glob(pattern))
    if not files:
        raise FileNotFoundError(f"no files match {pattern} in {os.getcwd()}")
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.interleave(read_shard, cycle_length=4)
    if training:
        dataset = dataset.shuffle(10_000, seed=1)
    dataset = dataset.map(parse_line)
    dataset = dataset.batch(batch_size, drop_remainder=True)
    return dataset
