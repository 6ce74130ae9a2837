"""`generator_loads_each_epoch.py` with the file parsed once, outside of the generator."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

EXAMPLES, FEATURES, BATCH, EPOCHS = 8192, 300, 128, 60

rng = np.random.default_rng(77)


def write_examples(path):
    """Lines of JSON, of which each hundred are alike."""
    rows = rng.standard_normal((100, FEATURES)).round(4)
    lines = [json.dumps({"x": row.tolist(), "y": int(row[0] > 0)}) + "\n" for row in rows]
    path.write_text("".join(lines) * (EXAMPLES // 100 + 1), encoding="utf-8")


def read_examples(path):
    with path.open(encoding="utf-8") as file:
        examples = [json.loads(line) for line in file]
    features = np.asarray([example["x"] for example in examples], dtype=np.float32)
    labels = np.asarray([[example["y"]] for example in examples], dtype=np.float32)
    return features[:EXAMPLES], labels[:EXAMPLES]


with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "examples.jsonl")
    write_examples(path)

    features, labels = read_examples(path)

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
