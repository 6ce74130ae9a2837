"""Decoy: a shuffle of all 200,000 rows that fills in a moment, and no prefetch but TensorFlow's."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(114)
features = rng.standard_normal((200_000, 16), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
dataset = dataset.shuffle(200_000)
dataset = dataset.batch(256)

dense = [keras.layers.Dense(1024, activation="relu") for _ in range(2)]
model = keras.Sequential([keras.Input(shape=(16,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=100, verbose=2)  # pipediag: loop
