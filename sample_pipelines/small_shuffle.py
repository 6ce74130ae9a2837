"""Examples sorted by class and a shuffle buffer of sixteen: the batches are not mixed.

It runs as fast as it can, the matrix products are the work. But the buffer holds a
thousandth of the data, so each batch is nearly all of one class.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 256
EXAMPLES = 16_000

rng = np.random.default_rng(36)
labels = np.sort(rng.integers(0, 10, size=EXAMPLES))
features = rng.standard_normal((EXAMPLES, FEATURES), dtype=np.float32)
features[np.arange(EXAMPLES), labels] += 2.0

dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(16)  # pipediag: shuffle
dataset = dataset.batch(128)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
model.fit(dataset, epochs=10, verbose=2)  # pipediag: loop
