"""`generator_loads_each_epoch.py` with the file loaded once, outside of the generator."""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

EXAMPLES, FEATURES, BATCH, EPOCHS = 4800, 1024, 64, 40

rng = np.random.default_rng(77)


def write_examples(path):
    features = rng.standard_normal((EXAMPLES, FEATURES), dtype=np.float32)
    np.savez_compressed(path, features=features, labels=(features[:, :1] > 0).astype("float32"))


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "examples.npz")
    write_examples(path)

    with np.load(path) as archive:
        features, labels = archive["features"], archive["labels"]

    def batches():
        order = np.random.permutation(EXAMPLES)
        for start in range(0, EXAMPLES, BATCH):
            rows = order[start : start + BATCH]
            yield features[rows], labels[rows]

    dataset = tf.data.Dataset.from_generator(
        batches,
        output_signature=(
            tf.TensorSpec([None, FEATURES], tf.float32),
            tf.TensorSpec([None, 1], tf.float32),
        ),
    )
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(EXAMPLES // BATCH))
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input(shape=(FEATURES,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    model.fit(dataset, epochs=EPOCHS, verbose=2)  # pipediag: loop
