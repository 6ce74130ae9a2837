"""Input pipeline of the click model: batches of lines are parsed at once, once."""

import glob
import os

import tensorflow as tf
from clickmodel import config


def parse_lines(lines):
    """CSV lines into columns of features and labels."""
    values = tf.io.decode_csv(lines, record_defaults=config.DEFAULTS)
    columns = dict(zip(config.COLUMNS, values))
    label = columns.pop("label")
    features = {name: tf.math.log1p(columns[name]) for name in config.NUMERIC}
    for name in config.CATEGORICAL:
        features[name] = tf.strings.to_hash_bucket_fast(columns[name], config.BUCKETS[name])
    return features, label


def read_shard(path):
    return tf.data.TextLineDataset(path).skip(1)


def make_dataset(pattern, batch_size, training=True):
    files = sorted(glob.glob(pattern))
    if not files:
        raise FileNotFoundError(f"no files match {pattern} in {os.getcwd()}")
    dataset = tf.data.Dataset.from_tensor_slices(files)
    dataset = dataset.interleave(read_shard, cycle_length=4)
    dataset = dataset.batch(2_048).map(parse_lines, num_parallel_calls=tf.data.AUTOTUNE).cache()
    dataset = dataset.unbatch()
    if training:
        dataset = dataset.shuffle(10_000, seed=1)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
