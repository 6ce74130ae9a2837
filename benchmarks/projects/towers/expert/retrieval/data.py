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


def train_batches(frame, config):
    columns = {name: frame[name].values.astype("int32") for name in ("user", "item", "topic")}
    columns["device"] = frame["device"].map(DEVICES).values.astype("int32")
    columns["hour"] = ((frame["when"] // 3600) % 24).values.astype("int32")
    columns["price"] = frame["price"].values.astype("float32")
    rows = tf.data.Dataset.from_tensor_slices(columns).shuffle(len(frame))
    return rows.batch(config.batch_size, drop_remainder=True).prefetch(2)
