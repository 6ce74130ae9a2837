"""Near miss: the same blocks taken apart to mix their clicks, which no `rebatch` would."""

import keras
import numpy as np
import tensorflow as tf

BLOCKS, CLICKS, BATCH, BUCKETS = 400, 8_192, 4_096, 1_000
FIELDS = ("user", "item", "shop", "query")

rng = np.random.default_rng(92)
log = {name: rng.integers(0, 2**31, size=(BLOCKS, CLICKS), dtype=np.int32) for name in FIELDS}
bought = (log["item"] % 7 < 2).astype("float32")


def hashed(fields, label):
    return {name: value % BUCKETS for name, value in fields.items()}, label


dataset = tf.data.Dataset.from_tensor_slices((log, bought)).map(hashed)
dataset = dataset.unbatch().shuffle(50_000).batch(BATCH)

inputs = {name: keras.Input(shape=(), dtype="int32", name=name) for name in FIELDS}
vectors = [keras.layers.Embedding(BUCKETS, 8)(each) for each in inputs.values()]
hidden = keras.layers.Dense(16, activation="relu")(keras.layers.Concatenate()(vectors))
model = keras.Model(inputs, keras.layers.Dense(1, activation="sigmoid")(hidden))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1, verbose=2)  # pipediag: loop
