"""Records the profiles in this folder, each of a small training on a CPU.

    python tests/trace/data/make_profiles.py fit|xla

- `fit`: ten marked steps of a stock Keras fit. The map sleeps 1 ms for each of 4 examples a batch,
  so that most of a step is input wait.
- `xla`: ten marked steps of an embedding that XLA compiles. Adam updates a table of 20,000 rows for
  the few that a batch looks up, so that most of what the steps compute is that update.

What the tests expect of the files follows from this script, whatever the machine.
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.profiler.trace import Trace

FIRST_STEP, STEPS, ROWS = 20, 10, 20_000


def start(directory: str) -> None:
    options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
    tf.profiler.experimental.start(directory, options=options)


class Profile(keras.callbacks.Callback):  # type: ignore[misc]
    """Profiles some steps, each in a marker from one batch's end to the next."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory
        self.marker: Trace | None = None

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if self.marker is not None:
            self.marker.__exit__(None, None, None)
            self.marker = None
        if batch == FIRST_STEP:
            start(self.directory)
        if batch == FIRST_STEP + STEPS:
            tf.profiler.experimental.stop()
        elif batch >= FIRST_STEP:
            self.marker = Trace("pipediag_step", step_num=batch)
            self.marker.__enter__()


def slow(rows: np.ndarray) -> np.ndarray:
    time.sleep(0.001)
    return rows


def fit(directory: str) -> None:
    rows = np.random.default_rng(0).integers(0, 50, (200, 6))
    dataset = (
        tf.data.Dataset.from_tensor_slices(rows, name="rows")
        .map(lambda row: tf.numpy_function(slow, [row], tf.int64), name="decode")
        .map(lambda row: (tf.ensure_shape(row, (6,)), 1.0), name="label")
        .batch(4, name="batch")
    )
    model = keras.Sequential(
        [keras.layers.Embedding(50, 4), keras.layers.Flatten(), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    model.fit(dataset, epochs=1, callbacks=[Profile(directory)], verbose=0)


def xla(directory: str) -> None:
    ids = np.random.default_rng(0).integers(0, ROWS, (32, 6)).astype("int32")
    batch = tf.data.Dataset.from_tensors((ids, np.zeros((32, 1), "float32"))).repeat()
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            keras.layers.Embedding(ROWS, 16, name="words"),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", jit_compile=True)
    model.make_train_function()
    iterator = iter(batch)
    model.train_function(iterator)
    start(directory)
    for step in range(STEPS):
        with Trace("pipediag_step", step_num=step):
            model.train_function(iterator)
    tf.profiler.experimental.stop()


if __name__ == "__main__":
    made = {"fit": fit, "xla": xla}
    with tempfile.TemporaryDirectory() as scratch:
        made[sys.argv[1]](scratch)
        [profile] = Path(scratch).glob("plugins/profile/*/*.xplane.pb")
        target = Path(__file__).with_name(f"{sys.argv[1]}.xplane.pb.gz")
        target.write_bytes(gzip.compress(profile.read_bytes(), mtime=0))
