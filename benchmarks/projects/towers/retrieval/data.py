"""Interactions joined with what is known of the items."""

import os

import pandas as pd
import tensorflow as tf

DEVICES = {"phone": 0, "desktop": 1, "tablet": 2}


def load(config):
    rows = pd.read_csv(os.path.join(config.data, "interactions.csv"))
    items = pd.read_csv(os.path.join(config.data, "items.csv"))
    rows = rows.merge(items, on="item").sort_values("when")
    return rows[: -config.valid_rows], rows[-config.valid_rows :], items


def examples(frame):
    def generate():
        for _, row in frame.sample(frac=1.0).iterrows():
            hour = (row["when"] // 3600) % 24
            yield (
                {
                    "user": row["user"],
                    "device": DEVICES[row["device"]],
                    "hour": hour,
                    "item": row["item"],
                    "topic": row["topic"],
                    "price": row["price"],
                }
            )

    return generate


def train_batches(frame, config):
    integer = tf.TensorSpec((), tf.int32)
    signature = {name: integer for name in ("user", "device", "hour", "item", "topic")}
    signature["price"] = tf.TensorSpec((), tf.float32)
    rows = tf.data.Dataset.from_generator(examples(frame), output_signature=signature)
    return rows.batch(config.batch_size, drop_remainder=True).prefetch(2)
