"""JSON lines parsed by `py_function`, one call from TensorFlow for each of them, then batched.

What a call costs beside the Python in it, about a tenth of a millisecond, is paid for each record.
One call for each batch, in which the same function is called for each of its lines, is the cure.
"""

import json

import keras
import numpy as np
import tensorflow as tf

ITEMS = 20
VOCABULARY = 5_000

rng = np.random.default_rng(31)
lines = [
    json.dumps({"items": row.tolist(), "price": float(price), "bought": int(bought)})
    for row, price, bought in zip(
        rng.integers(0, VOCABULARY, size=(25_600, ITEMS)),
        rng.random(25_600),
        rng.integers(0, 2, size=25_600),
        strict=True,
    )
]


def parse(line):
    record = json.loads(line.numpy())
    return np.array(record["items"], np.int32), record["price"], record["bought"]


def features_and_label(line):
    types = [tf.int32, tf.float32, tf.float32]
    items, price, bought = tf.py_function(parse, [line], types)
    items.set_shape([ITEMS])
    price.set_shape([])
    bought.set_shape([])
    return {"items": items, "price": price}, bought


dataset = tf.data.Dataset.from_tensor_slices(lines)
dataset = dataset.shuffle(10_000)
dataset = dataset.map(features_and_label)  # pipediag: culprit
dataset = dataset.batch(128)

items = keras.Input(shape=(ITEMS,), dtype="int32", name="items")
price = keras.Input(shape=(), name="price")
table = keras.layers.Embedding(VOCABULARY, 16)(items)
pooled = keras.layers.GlobalAveragePooling1D()(table)
joined = keras.layers.Concatenate()([pooled, keras.layers.Reshape((1,))(price)])
model = keras.Model([items, price], keras.layers.Dense(1, activation="sigmoid")(joined))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
