"""Records `fit.xplane.pb.gz`: ten marked steps of a stock Keras fit with a slow map, on a CPU.

    python tests/trace/data/make_fit_profile.py

The map sleeps 1 ms for each of 4 examples a batch, so most of a step is input wait. What
test_summary.py expects of the file follows from this script, whatever the machine.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.profiler.trace import Trace

TARGET = Path(__file__).with_name("fit.xplane.pb.gz")
FIRST_STEP, STEPS = 20, 10


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
            options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
            tf.profiler.experimental.start(self.directory, options=options)
        if batch == FIRST_STEP + STEPS:
            tf.profiler.experimental.stop()
        elif batch >= FIRST_STEP:
            self.marker = Trace("pipediag_step", step_num=batch)
            self.marker.__enter__()


def slow(rows: np.ndarray) -> np.ndarray:
    time.sleep(0.001)
    return rows


def main() -> None:
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
    with tempfile.TemporaryDirectory() as directory:
        model.fit(dataset, epochs=1, callbacks=[Profile(directory)], verbose=0)
        [profile] = Path(directory).glob("plugins/profile/*/*.xplane.pb")
        TARGET.write_bytes(gzip.compress(profile.read_bytes(), mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
