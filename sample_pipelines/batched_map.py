"""A cheap function mapped over whole batches: near miss of a map per example.

The same scaling as in `per_element_map.py`, after `batch`. The pipeline keeps ahead of a
network that has real work to do.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 64
EXAMPLES = 51_200

rng = np.random.default_rng(28)
readings = rng.integers(0, 255, size=(EXAMPLES, FEATURES), dtype=np.uint8)
labels = (readings[:, :1] > 127).astype("float32")


def scale(reading, label):
    return tf.cast(reading, tf.float32) / 255.0, label


dataset = tf.data.Dataset.from_tensor_slices((readings, labels))
dataset = dataset.batch(512)
dataset = dataset.map(scale)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
