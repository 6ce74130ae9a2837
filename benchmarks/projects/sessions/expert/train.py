"""Next item of a session: python train.py"""

import argparse
import os

import tensorflow as tf
from nextitem.events import load, write_log
from nextitem.model import build

ITEMS = 5_000


def dataset(path, length, batch_size):
    ds = tf.data.Dataset.from_tensor_slices(load(path, length))
    return ds.shuffle(2_000).batch(batch_size).prefetch(2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", default="sessions.jsonl")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--length", type=int, default=20)
    args = parser.parse_args()
    if not os.path.exists(args.log):
        write_log(args.log, items=ITEMS)
    tf.keras.utils.set_random_seed(2)
    model = build(ITEMS, args.length)
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(dataset(args.log, args.length, args.batch_size), epochs=args.epochs, verbose=2)


if __name__ == "__main__":
    main()
