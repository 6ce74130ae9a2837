"""The same TFRecords parsed a batch at a time; a network with real work to do behind it."""

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


def parse(records):
    example = tf.io.parse_example(records, FEATURES)
    return example["x"], example["y"]


with tempfile.TemporaryDirectory() as folder:
    write(f"{folder}/train.tfrecord")
    dataset = tf.data.TFRecordDataset(f"{folder}/train.tfrecord")
    dataset = dataset.batch(256).map(parse)

    dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.Input(shape=(16,)), *dense, keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")
    model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
