"""`missing_prefetch.py` without the option: masks are drawn beside the step, as TensorFlow does."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(37)
features = rng.standard_normal((5120, 2048), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")


def mask(batch, targets):
    keep = tf.random.uniform(tf.shape(batch)) > 0.1
    return tf.where(keep, batch, 0.0), targets


dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(5120).repeat()
dataset = dataset.batch(256, drop_remainder=True)
dataset = dataset.map(mask)

model = keras.Sequential([keras.Input(shape=(2048,))])
model.add(keras.layers.Dense(1024, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, steps_per_epoch=200, epochs=1000, verbose=2)  # pipediag: loop
