"""A cheap function mapped over single examples before they are batched.

Scaling eight numbers takes no time; being called once for each example does. The same
function after `batch` would be called once for every 512 examples.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 8
EXAMPLES = 102_400

rng = np.random.default_rng(27)
readings = rng.integers(0, 255, size=(EXAMPLES, FEATURES), dtype=np.uint8)
labels = (readings[:, :1] > 127).astype("float32")


def scale(reading, label):
    return tf.cast(reading, tf.float32) / 255.0, label


dataset = tf.data.Dataset.from_tensor_slices((readings, labels))
dataset = dataset.map(scale)  # pipediag: culprit
dataset = dataset.batch(512)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
