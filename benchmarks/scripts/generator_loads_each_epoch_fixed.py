"""`generator_loads_each_epoch.py` with the arrays there before the generator starts."""

import keras
import numpy as np
import tensorflow as tf

EXAMPLES, FEATURES, BATCH, EPOCHS = 32_768, 300, 128, 16

rng = np.random.default_rng(77)
features = rng.standard_normal((EXAMPLES, FEATURES), dtype=np.float32)
labels = (features[:, :1] > 0).astype("float32")


def batches():
    order = np.random.permutation(EXAMPLES)
    for start in range(0, EXAMPLES, BATCH):
        rows = order[start : start + BATCH]
        yield features[rows], labels[rows]


signature = (
    tf.TensorSpec([None, FEATURES], tf.float32),
    tf.TensorSpec([None, 1], tf.float32),
)
dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
dataset = dataset.apply(tf.data.experimental.assert_cardinality(EXAMPLES // BATCH))
dataset = dataset.prefetch(tf.data.AUTOTUNE)

layers = [keras.layers.Dense(256, activation="relu") for _ in range(2)]
outputs = keras.layers.Dense(1, activation="sigmoid")
model = keras.Sequential([keras.Input(shape=(FEATURES,)), *layers, outputs])
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
