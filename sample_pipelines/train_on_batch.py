"""A loop over a dataset that calls `train_on_batch`.

The dense layers are the work; `train_on_batch` adds its own cost to each step.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 256

rng = np.random.default_rng(60)
features = rng.standard_normal((12_800, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(12_800).batch(256)

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")

for epoch in range(15):
    for x, y in dataset:  # pipediag: loop
        loss = model.train_on_batch(x, y)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
