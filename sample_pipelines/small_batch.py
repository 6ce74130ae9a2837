"""Batches of eight for a tiny model: the fixed cost of a step is nearly all of it.

A step on eight examples takes about as long as a step on 256 would. A larger batch (and a
learning rate to go with it) is the lever.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 16
EXAMPLES = 16_000

rng = np.random.default_rng(39)
features = rng.standard_normal((EXAMPLES, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(4000)
dataset = dataset.batch(8)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
