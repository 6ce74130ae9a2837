"""Lines of text that are parsed one by one, because a filter stands before the batch.

Batching first would batch lines that the filter drops. But the map and the filter can both take
batches, which are taken apart again behind them.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

LINES = 40_000


def write_lines(path):
    rng = np.random.default_rng(34)
    prices = rng.gamma(2.0, 10.0, LINES)
    labels = rng.choice([-1, 0, 1], LINES, p=[0.1, 0.7, 0.2])
    ids = rng.integers(0, [50, 900], (LINES, 2))
    rows = zip(labels, prices, ids, strict=True)
    path.write_text("".join(f"{y},{price:.2f},shop{a},item{b}\n" for y, price, (a, b) in rows))


def parse(line):
    label, price, shop, item = tf.io.decode_csv(line, [-1.0, 0.0, "", ""])
    features = {
        "price": tf.stack([tf.math.log1p(price), tf.sqrt(price)]),
        "rank": tf.reduce_sum(tf.cast(price >= tf.constant([5.0, 10.0, 20.0, 40.0]), tf.int64)),
        "shop": tf.strings.to_hash_bucket_fast(tf.strings.lower(shop), 64),
        "item": tf.strings.to_hash_bucket_fast(tf.strings.lower(item), 1_024),
    }
    return features, label


ids = {name: keras.Input((), name=name, dtype="int64") for name in ("rank", "shop", "item")}
price = keras.Input((2,), name="price")
embedded = [keras.layers.Embedding(1_024, 8)(one) for one in ids.values()]
joined = keras.layers.Concatenate()([price, *embedded])
hidden = keras.layers.Dense(32, activation="relu")(joined)
model = keras.Model({**ids, "price": price}, keras.layers.Dense(1, activation="sigmoid")(hidden))
model.compile(optimizer="sgd", loss="binary_crossentropy")

with tempfile.TemporaryDirectory() as folder:
    write_lines(Path(folder) / "lines.csv")
    dataset = tf.data.TextLineDataset(f"{folder}/lines.csv")
    dataset = dataset.map(parse)  # pipediag: culprit
    dataset = dataset.filter(lambda _, label: label >= 0.0)
    dataset = dataset.shuffle(4_000).batch(256).prefetch(1)
    model.fit(dataset, epochs=12, verbose=2)  # pipediag: loop
