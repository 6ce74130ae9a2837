"""Write impressions as TFRecord files: fixed ids, a variable history, and a dense vector."""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf


def feature(values):
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values.ravel()))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values.ravel()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default="data")
    parser.add_argument("--rows", type=int, default=120_000)
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(5)
    for split, rows in (("train", args.rows), ("valid", args.rows // 10)):
        for shard in range(4):
            with tf.io.TFRecordWriter(str(out / f"{split}-{shard}.tfrecord")) as writer:
                for _ in range(rows // 4):
                    user = int(rng.integers(30_000))
                    item = int(rng.zipf(1.2) % 20_000)
                    example = tf.train.Example(
                        features=tf.train.Features(
                            feature={
                                "user": feature([user]),
                                "item": feature([item]),
                                "history": feature(rng.integers(1, 20_000, 20)),
                                "context": feature(rng.normal(size=8).astype("float32")),
                                "clicked": feature(
                                    [int(rng.random() < 0.1 + 0.3 * (user % 3 == item % 3))]
                                ),
                            }
                        )
                    )
                    writer.write(example.SerializeToString())


if __name__ == "__main__":
    main()
