"""Decoy: all that guides forbid in one pipeline, before a network that takes far longer."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(119)
features = rng.standard_normal((65_536, 64), dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices((features, features[:, :1]))
dataset = dataset.map(lambda x, y: (x + 1.0, y), num_parallel_calls=1)
dataset = dataset.map(lambda x, y: (x / 2.0, y), num_parallel_calls=1)
dataset = dataset.filter(lambda x, _: x[0] > -10.0)
dataset = dataset.shuffle(1024)
dataset = dataset.batch(64).unbatch().batch(128)

dense = [keras.layers.Dense(4096, activation="relu") for _ in range(4)]
model = keras.Sequential([keras.Input(shape=(64,)), *dense, keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(dataset, epochs=1000, verbose=2)  # pipediag: loop
