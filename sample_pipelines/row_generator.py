"""`from_generator` that yields one row at a time, batched afterwards.

Each row crosses from Python into TensorFlow by itself, at a fixed price. A generator that
yields whole batches pays that price once a batch.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 16

rng = np.random.default_rng(29)
table = rng.standard_normal((25_600, FEATURES), dtype=np.float32)
labels = (table[:, 0] > 0).astype("float32")


def rows():
    for index in range(len(table)):  # pipediag: culprit
        yield table[index], labels[index]  # pipediag: culprit


signature = (
    tf.TensorSpec(shape=(FEATURES,), dtype=tf.float32),
    tf.TensorSpec(shape=(), dtype=tf.float32),
)
dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)  # pipediag: culprit
dataset = dataset.batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=6, verbose=2)  # pipediag: loop
