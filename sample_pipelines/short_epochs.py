"""Three steps an epoch over fifteen epochs, with validation after each.

There are only forty-five training steps, and between any three of them a validation. The
dense layers are the work.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 512
BATCH = 256

rng = np.random.default_rng(56)
features = rng.standard_normal((4 * BATCH, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")
training = tf.data.Dataset.from_tensor_slices((features[: 3 * BATCH], labels[: 3 * BATCH]))
training = training.shuffle(3 * BATCH).batch(BATCH)
held_out = tf.data.Dataset.from_tensor_slices((features[3 * BATCH :], labels[3 * BATCH :]))
held_out = held_out.batch(64)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(training, validation_data=held_out, epochs=15, verbose=2)  # pipediag: loop
