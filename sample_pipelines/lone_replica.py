"""MirroredStrategy with one replica: nothing is divided, and Keras leaves XLA off.

It is what a script for several GPUs does on a machine that has one, or none.
"""

import keras
import numpy as np
import tensorflow as tf

VOCABULARY = 1000
LENGTH = 20

rng = np.random.default_rng(22)
words = rng.integers(0, VOCABULARY, size=(25_600, LENGTH), dtype=np.int32)
labels = rng.integers(0, 2, size=(25_600, 1))
dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(25_600).batch(256)

strategy = tf.distribute.MirroredStrategy()
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
