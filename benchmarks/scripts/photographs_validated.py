"""Small image classifier: training arrays in memory, validation photographs decoded on the fly."""

import tempfile
import zlib
from pathlib import Path

import numpy as np
import tensorflow as tf

folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(11)
train_x = rng.integers(0, 255, (1600, 32, 32, 3)).astype("uint8")
train_y = rng.integers(0, 10, 1600).astype("int64")
blobs = np.array(
    [zlib.compress(rng.integers(0, 255, (96, 96, 3), dtype="uint8").tobytes()) for _ in range(500)],
    dtype=object,
)
valid_y = rng.integers(0, 10, 500).astype("int64")


def read_raw(blob):
    image = (
        np.frombuffer(zlib.decompress(blob.numpy()), "uint8").reshape(96, 96, 3).astype("float32")
    )
    image = (image - image.mean(axis=(0, 1))) / (image.std(axis=(0, 1)) + 1e-6)
    # box filter
    out = np.zeros((32, 32, 3), "float32")
    for i in range(32):
        for j in range(32):
            out[i, j] = image[3 * i : 3 * i + 3, 3 * j : 3 * j + 3].mean(axis=(0, 1))
    return out


def load(blob, label):
    image = tf.py_function(read_raw, [blob], tf.float32)
    image.set_shape((32, 32, 3))
    return image, label


def standardise(image, label):
    image = tf.cast(image, tf.float32)
    return (image - 127.5) / 74.0, label


train = (
    tf.data.Dataset.from_tensor_slices((train_x, train_y))
    .map(standardise)
    .cache()
    .shuffle(1600)
    .batch(32)
    .prefetch(tf.data.AUTOTUNE)
)
valid = (
    tf.data.Dataset.from_tensor_slices((blobs, valid_y))
    .map(load, num_parallel_calls=tf.data.AUTOTUNE)  # pipediag: culprit
    .batch(64)
    .prefetch(tf.data.AUTOTUNE)
)

model = tf.keras.Sequential(
    [
        tf.keras.Input((32, 32, 3)),
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.MaxPooling2D(),
        tf.keras.layers.Conv2D(32, 3, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(10),
    ]
)
model.compile(
    "adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
)
model.fit(  # pipediag: loop
    train,
    validation_data=valid,
    epochs=8,
    verbose=2,
    callbacks=[
        tf.keras.callbacks.CSVLogger(str(Path(folder.name) / "log.csv")),
        tf.keras.callbacks.ReduceLROnPlateau(patience=3),
    ],
)
