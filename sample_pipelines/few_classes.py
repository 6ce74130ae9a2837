"""Labels made one-hot over ten classes, which ship no more than a few numbers an example.

`sparse_categorical_crossentropy` would give the same loss, and nothing would be faster for it.
"""

import keras
import numpy as np
import tensorflow as tf

CLASSES = 10
FEATURES = 512

rng = np.random.default_rng(61)
features = rng.standard_normal((25_600, FEATURES)).astype("float32")
classes = rng.integers(0, CLASSES, 25_600)


def with_one_hot_label(example, label):
    return example, tf.one_hot(label, CLASSES)


dataset = tf.data.Dataset.from_tensor_slices((features, classes)).shuffle(4000)
dataset = dataset.map(with_one_hot_label).batch(256)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(2048, activation="relu"),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="categorical_crossentropy")
model.fit(dataset, epochs=3, verbose=2)  # pipediag: loop
