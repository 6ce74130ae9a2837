"""A pipeline whose automatic prefetch was switched off: batches and steps take turns.

The masks are drawn for a whole batch at a time, by a `map` that stays serial because it is
random. Without a prefetch behind it nothing is made while the model computes.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 2048
EXAMPLES = 5120

rng = np.random.default_rng(37)
features = rng.standard_normal((EXAMPLES, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")


def mask(batch, targets):
    keep = tf.random.uniform(tf.shape(batch)) > 0.1
    return tf.where(keep, batch, 0.0), targets


dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(EXAMPLES).repeat()
dataset = dataset.batch(256, drop_remainder=True)
dataset = dataset.map(mask)  # pipediag: culprit
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
dataset = dataset.with_options(options)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, steps_per_epoch=200, epochs=5, verbose=2)  # pipediag: loop
