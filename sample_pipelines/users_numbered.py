"""Users numbered by `py_function` as they come: as slow as `json_records.py`, and not for an edit.

The function remembers whom it has seen, so that what it returns hangs on all calls before. To try
a change, pipediag would have to call it more often than the script does.
"""

import json

import keras
import numpy as np
import tensorflow as tf

USERS = 2_000

rng = np.random.default_rng(32)
lines = [
    json.dumps({"user": f"user{user}", "age": int(age), "bought": int(bought)})
    for user, age, bought in zip(
        rng.integers(0, USERS, size=25_600),
        rng.integers(18, 80, size=25_600),
        rng.integers(0, 2, size=25_600),
        strict=True,
    )
]
numbers = {}


def parse(line):
    record = json.loads(line.numpy())
    user = numbers.setdefault(record["user"], len(numbers))
    return user, record["age"] / 80, record["bought"]


def features_and_label(line):
    types = [tf.int32, tf.float32, tf.float32]
    user, age, bought = tf.py_function(parse, [line], types)
    for each in (user, age, bought):
        each.set_shape([])
    return {"user": user, "age": age}, bought


dataset = tf.data.Dataset.from_tensor_slices(lines)
dataset = dataset.map(features_and_label)  # pipediag: culprit
dataset = dataset.batch(128)

user = keras.Input(shape=(), dtype="int32", name="user")
age = keras.Input(shape=(), name="age")
table = keras.layers.Embedding(USERS, 16)(user)
joined = keras.layers.Concatenate()([table, keras.layers.Reshape((1,))(age)])
model = keras.Model([user, age], keras.layers.Dense(1, activation="sigmoid")(joined))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
