"""`validation_each_epoch.py` with validation every sixth epoch, in larger batches."""

import keras
import numpy as np
import tensorflow as tf

FEATURES, EPOCHS = 64, 30

rng = np.random.default_rng(75)
features = rng.standard_normal((32_768, FEATURES), dtype=np.float32)
labels = (features[:, :2].sum(axis=1, keepdims=True) > 0).astype("float32")
training = tf.data.Dataset.from_tensor_slices((features[:8192], labels[:8192]))
training = training.shuffle(8192).batch(256).prefetch(tf.data.AUTOTUNE)
validation = tf.data.Dataset.from_tensor_slices((features[8192:], labels[8192:])).batch(1024)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(  # pipediag: loop
    training, validation_data=validation, validation_freq=6, epochs=EPOCHS, verbose=2
)
