"""Decoy: there is a cache already, but in front of the `map` that costs the time."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(124)
features = rng.integers(0, 255, size=(20_480, 8), dtype=np.uint8)
dataset = tf.data.Dataset.from_tensor_slices((features, (features[:, :1] > 127)))
dataset = dataset.cache()
dataset = dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y))  # pipediag: culprit
dataset = dataset.batch(512)

layers = [keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
model = keras.Sequential([keras.Input(shape=(8,)), *layers])
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
