"""TFRecords of a few features, parsed one example at a time before they are batched."""

import tempfile

import keras
import numpy as np
import tensorflow as tf

COLUMN = tf.io.FixedLenFeature
FEATURES = {"x": COLUMN([16], tf.float32), "y": COLUMN([1], tf.float32)}


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def write(path):
    rng = np.random.default_rng(101)
    with tf.io.TFRecordWriter(path) as writer:
        for row in rng.standard_normal((20_000, 17)):
            features = tf.train.Features(feature={"x": floats(row[:16]), "y": floats(row[16:])})
            writer.write(tf.train.Example(features=features).SerializeToString())


def parse(record):
    example = tf.io.parse_single_example(record, FEATURES)
    return example["x"], example["y"]


with tempfile.TemporaryDirectory() as folder:
    write(f"{folder}/train.tfrecord")
    dataset = tf.data.TFRecordDataset(f"{folder}/train.tfrecord")
    dataset = dataset.map(parse)  # pipediag: culprit
    dataset = dataset.batch(256)

    layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input(shape=(16,)), *layers])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
