"""A tiny model on batches that are large already: the host's work per step outweighs the model's.

Starting a step, Keras' bookkeeping and reading the loss back take longer than the two small
matrix products. `steps_per_execution` shares that cost among several steps.
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES = 8
BATCH = 512

rng = np.random.default_rng(40)
features = rng.standard_normal((100, BATCH, FEATURES), dtype=np.float32)
labels = (features[:, :, :1] > 0).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(100).repeat()

model = keras.Sequential(
    [
        keras.Input(shape=(FEATURES,)),
        keras.layers.Dense(4, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy")
model.fit(dataset, steps_per_epoch=2000, epochs=20, verbose=2)  # pipediag: loop
