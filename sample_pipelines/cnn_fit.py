"""A small convolutional network on 28 x 28 images, `fit` on arrays that lie in memory.

The convolution is the work. A `fit` on arrays needs no pipeline of its own, and this one
should not be told to write one.
"""

import keras
import numpy as np

EXAMPLES = 16_000

rng = np.random.default_rng(7)
labels = rng.integers(0, 10, size=EXAMPLES)
images = rng.random((EXAMPLES, 28, 28, 1), dtype=np.float32) * 0.5
images[np.arange(EXAMPLES), labels * 2, :, 0] += 0.5

model = keras.Sequential(
    [
        keras.Input(shape=(28, 28, 1)),
        keras.layers.Conv2D(32, (3, 3), activation="relu"),
        keras.layers.MaxPooling2D((2, 2)),
        keras.layers.Conv2D(32, (3, 3), activation="relu"),
        keras.layers.MaxPooling2D((2, 2)),
        keras.layers.Flatten(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(images[:14_400], labels[:14_400], batch_size=64, epochs=6, verbose=2)  # pipediag: loop
loss, accuracy = model.evaluate(images[14_400:], labels[14_400:], verbose=0)
print(f"test accuracy: {accuracy:.3f}")
