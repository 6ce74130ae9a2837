"""Generators that wait for a remote store, read one after the other by a `flat_map`.

Each of them could wait while the others do: an `interleave` of all of them, on enough threads,
gives several times the rows.
"""

import time

import keras
import numpy as np
import tensorflow as tf

FEATURES = 32


def rows(shard):
    shard_rng = np.random.default_rng(shard)
    for _ in range(2_000):
        time.sleep(0.002)  # pipediag: culprit
        row = shard_rng.standard_normal(FEATURES, dtype=np.float32)
        yield row, row[:1] > 0  # pipediag: culprit


def rows_of(shard):
    signature = (
        tf.TensorSpec(shape=(FEATURES,), dtype=tf.float32),
        tf.TensorSpec(shape=(1,), dtype=tf.bool),
    )
    return tf.data.Dataset.from_generator(  # pipediag: culprit
        rows,
        output_signature=signature,
        args=(shard,),  # pipediag: culprit
    )


dataset = tf.data.Dataset.range(8).flat_map(rows_of).batch(16).repeat()  # pipediag: outer

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, steps_per_epoch=400, epochs=3, verbose=2)  # pipediag: loop
