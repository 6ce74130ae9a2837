"""Integer labels that the loss makes one-hot in the step, over 10,000 classes.

Nothing of the kind is shipped: the batch has one integer an example.
"""

import keras
import numpy as np

CLASSES = 10_000
LENGTH = 10

rng = np.random.default_rng(71)
words = rng.integers(0, 1000, size=(2_560, LENGTH), dtype=np.int32)
labels = rng.integers(0, CLASSES, size=2_560)


def smoothed(label, predicted):
    of_each_class = keras.ops.one_hot(keras.ops.reshape(label, (-1,)), CLASSES)
    return keras.losses.categorical_crossentropy(of_each_class, predicted, label_smoothing=0.1)


model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(1000, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss=smoothed)
model.fit(words, labels, batch_size=128, epochs=40, verbose=2)  # pipediag: loop
