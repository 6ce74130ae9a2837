"""Reading of impressions: parsed in batches, once."""

import pathlib

import tensorflow as tf

FEATURES = {
    "user": tf.io.FixedLenFeature([], tf.int64),
    "item": tf.io.FixedLenFeature([], tf.int64),
    "history": tf.io.FixedLenFeature([20], tf.int64),
    "context": tf.io.FixedLenFeature([8], tf.float32),
    "clicked": tf.io.FixedLenFeature([], tf.int64),
}


class ImpressionReader:
    """Gives the dataset of a split."""

    def __init__(self, root, batch_size):
        self.root = pathlib.Path(root)
        self.batch_size = batch_size

    def _parse(self, records):
        example = tf.io.parse_example(records, FEATURES)
        label = tf.cast(example.pop("clicked"), tf.float32)
        example["context"] = tf.clip_by_value(example["context"], -3.0, 3.0)
        return example, label

    def dataset(self, split):
        files = sorted(str(path) for path in self.root.glob(f"{split}-*.tfrecord"))
        ds = tf.data.TFRecordDataset(files)
        if split == "train":
            ds = ds.cache().shuffle(5_000)
        ds = ds.batch(self.batch_size)
        ds = ds.map(self._parse, num_parallel_calls=tf.data.AUTOTUNE)
        return ds.prefetch(tf.data.AUTOTUNE)
