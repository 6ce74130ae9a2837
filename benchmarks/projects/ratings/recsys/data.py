"""Ratings: made once, kept as a NumPy file."""

import os

import numpy as np
import tensorflow as tf

USERS, ITEMS = 3_000, 2_000


def load(path, rows=200_000, seed=3):
    if not os.path.exists(path):
        rng = np.random.default_rng(seed)
        users = rng.integers(0, USERS, rows)
        items = (users * 7 + rng.zipf(1.4, rows)) % ITEMS
        np.savez(path, users=users.astype("int64"), items=items.astype("int64"))
    stored = np.load(path)
    return stored["users"], stored["items"]


def split(users, items, share=0.1, seed=1):
    rng = np.random.default_rng(seed)
    held_out = rng.random(len(users)) < share
    return (users[~held_out], items[~held_out]), (users[held_out], items[held_out])


def training_dataset(users, items, batch_size):
    dataset = tf.data.Dataset.from_tensor_slices((users, items))
    dataset = dataset.shuffle(50_000, seed=2)
    return dataset.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
