"""tf.data's debug mode, left on: the mapped function runs as Python, operation by operation.

Nothing in the pipeline is compiled, made parallel or fetched ahead.
"""

import keras
import numpy as np
import tensorflow as tf

tf.data.experimental.enable_debug_mode()

FEATURES = 64

rng = np.random.default_rng(66)
readings = rng.integers(0, 255, size=(6400, FEATURES), dtype=np.uint8)
labels = (readings[:, :1] > 127).astype("float32")


def scale(reading, label):
    values = tf.cast(reading, tf.float32) / 255.0
    return (values - tf.reduce_mean(values)) / (tf.math.reduce_std(values) + 1e-3), label


dataset = tf.data.Dataset.from_tensor_slices((readings, labels))
dataset = dataset.shuffle(6400)
dataset = dataset.map(scale)  # pipediag: culprit
dataset = dataset.batch(16)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
