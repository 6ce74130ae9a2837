"""Random image augmentation, one image at a time, in a `map` left serial.

Random operations are stateful, so tf.data keeps the `map` serial. Its cost is several times
that of the small network that waits for it.
"""

import keras
import numpy as np
import tensorflow as tf

SIZE = 64

rng = np.random.default_rng(22)
images = rng.random((3200, SIZE, SIZE, 3), dtype=np.float32)
labels = rng.integers(0, 4, size=3200)


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_crop(image, [48, 48, 3])
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return image, label


dataset = tf.data.Dataset.from_tensor_slices((images, labels))
dataset = dataset.shuffle(3200)
dataset = dataset.map(augment)  # pipediag: culprit
dataset = dataset.batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(48, 48, 3)),
        keras.layers.AveragePooling2D(8),
        keras.layers.Flatten(),
        keras.layers.Dense(4, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=15, verbose=2)  # pipediag: loop
