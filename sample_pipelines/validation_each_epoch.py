"""Validation after each epoch that takes longer than the epoch.

The validation set is larger than what one epoch trains on, and its batches are small. Validating
every few epochs, in larger batches, would tell as much.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES, EPOCHS = 64, 10

rng = np.random.default_rng(75)
features = rng.standard_normal((32_768, FEATURES), dtype=np.float32)
labels = (features[:, :2].sum(axis=1, keepdims=True) > 0).astype("float32")
training = tf.data.Dataset.from_tensor_slices((features[:8192], labels[:8192]))
training = training.shuffle(8192).batch(256).prefetch(tf.data.AUTOTUNE)
validation = tf.data.Dataset.from_tensor_slices((features[8192:], labels[8192:])).batch(32)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(training, validation_data=validation, epochs=EPOCHS, verbose=2)  # pipediag: loop
