"""A large table mirrored on two replicas, which exchange the rows of their batches alone.

Under `clipnorm` the rows of the table's gradient stay rows. Without two GPUs it splits the CPU.
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

VOCABULARY = 100_000
LENGTH = 20

rng = np.random.default_rng(23)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000).batch(256)

strategy = tf.distribute.MirroredStrategy(devices)
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input(shape=(LENGTH,), dtype="int32"),
            keras.layers.Embedding(VOCABULARY, 64),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    optimizer = keras.optimizers.SGD(0.05, clipnorm=1.0)
    model.compile(optimizer=optimizer, loss="binary_crossentropy")

model.fit(dataset, epochs=4, verbose=2)  # pipediag: loop
