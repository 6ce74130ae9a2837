"""Text classifier with a weight monitor."""

import json
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers

VOCAB, LEN = 10_000, 60
folder = tempfile.TemporaryDirectory()
rng = np.random.default_rng(6)
x = rng.integers(1, VOCAB, (24_000, LEN)).astype("int32")
y = (x[:, :10].mean(1) > VOCAB / 2).astype("float32")


class WeightMonitor(keras.callbacks.Callback):
    """Histogram of every weight, to see dead units."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def on_train_batch_end(self, batch, logs=None):
        record = {"batch": batch, "loss": float(logs["loss"])}
        for w in self.model.weights:
            values = np.asarray(w)
            counts, edges = np.histogram(values, bins=30)
            record[w.path] = [counts.tolist(), edges.tolist()]
        with Path(self.path).open("a") as file:
            file.write(json.dumps(record) + "\n")


inputs = keras.Input((LEN,), dtype="int32")
h = layers.Embedding(VOCAB, 48)(inputs)
h = layers.GlobalAveragePooling1D()(h)
h = layers.Dense(64, activation="relu")(h)
h = layers.Dropout(0.2)(h)
outputs = layers.Dense(1, activation="sigmoid")(h)
model = keras.Model(inputs, outputs)
model.compile(optimizer="sgd", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(  # pipediag: loop
    x,
    y,
    validation_split=0.1,
    batch_size=128,
    epochs=5,
    verbose=2,
    callbacks=[
        WeightMonitor(f"{folder.name}/weights.jsonl"),
        keras.callbacks.ModelCheckpoint(
            f"{folder.name}/text.weights.h5", save_weights_only=True, save_best_only=True
        ),
    ],
)
