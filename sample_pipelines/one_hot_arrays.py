"""Labels that `to_categorical` made one-hot over 10,000 classes, before any pipeline.

A label of one integer takes 40 kB in memory and in each batch, and the loss takes the integer too.
"""

import keras
import numpy as np

CLASSES = 10_000
LENGTH = 10

rng = np.random.default_rng(71)
words = rng.integers(0, 1000, size=(2_560, LENGTH), dtype=np.int32)
labels = keras.utils.to_categorical(rng.integers(0, CLASSES, size=2_560), CLASSES)

model = keras.Sequential(
    [
        keras.Input(shape=(LENGTH,), dtype="int32"),
        keras.layers.Embedding(1000, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(CLASSES, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="categorical_crossentropy")
model.fit(words, labels, batch_size=128, epochs=40, verbose=2)  # pipediag: loop
