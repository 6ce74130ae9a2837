"""Labels made one-hot over a large vocabulary in the pipeline, for a small model.

Each label of 8 bytes becomes 80 kB, which the batch copies; the loss takes the class as well.
"""

import keras
import numpy as np
import tensorflow as tf

CLASSES = 20_000
LENGTH = 10

rng = np.random.default_rng(94)
words = rng.integers(0, 1000, size=(12_800, LENGTH), dtype=np.int32)
labels = rng.integers(0, CLASSES, size=12_800)


def one_hot(inputs, label):
    return inputs, tf.one_hot(label, CLASSES)


dataset = tf.data.Dataset.from_tensor_slices((words, labels)).shuffle(4000)
dataset = dataset.map(one_hot).batch(128)  # pipediag: culprit

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(1000, 4),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="categorical_crossentropy")
model.fit(dataset, epochs=5, verbose=2)  # pipediag: loop
