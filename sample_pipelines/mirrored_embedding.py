"""Embedding model under MirroredStrategy with `fit`, on two devices.

Without two GPUs the script splits the CPU into two logical devices, as one does to try a
distributed script on a laptop. The replicas' matrix products are the work.
"""

import keras
import numpy as np
import tensorflow as tf

if len(tf.config.list_physical_devices("GPU")) < 2:
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()],
    )
    devices = ["/CPU:0", "/CPU:1"]
else:
    devices = ["/GPU:0", "/GPU:1"]

VOCABULARY = 1000
LENGTH = 20

rng = np.random.default_rng(2)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(25_600).batch(256)

strategy = tf.distribute.MirroredStrategy(devices)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input(shape=(LENGTH,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, 64),
            keras.layers.Flatten(),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss="binary_crossentropy")

model.fit(dataset, epochs=8, verbose=2)  # pipediag: loop
