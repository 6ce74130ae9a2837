"""`row_generator.py` with a generator that yields whole batches."""

import keras
import numpy as np
import tensorflow as tf

BATCH = 128
rng = np.random.default_rng(29)
table = rng.standard_normal((25_600, 16), dtype=np.float32)
labels = (table[:, 0] > 0).astype("float32")


def batches():
    for start in range(0, len(table), BATCH):
        yield table[start : start + BATCH], labels[start : start + BATCH]


signature = (tf.TensorSpec([None, 16], tf.float32), tf.TensorSpec([None], tf.float32))
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)

layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
model = keras.Sequential([keras.Input(shape=(16,)), *layers])
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
