"""Records `xla.xplane.pb.gz`: ten marked steps of an embedding that XLA compiles, on a CPU.

    python tests/trace/data/make_xla_profile.py

Adam updates a table of 20,000 rows for the few that a batch looks up, so that most of what the
steps compute is that update. What the tests expect of the file follows from this script, whatever
the machine.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.profiler.trace import Trace

TARGET = Path(__file__).with_name("xla.xplane.pb.gz")
ROWS, STEPS = 20_000, 10


def main() -> None:
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
    with tempfile.TemporaryDirectory() as directory:
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
        tf.profiler.experimental.start(directory, options=options)
        for step in range(STEPS):
            with Trace("pipediag_step", step_num=step):
                model.train_function(iterator)
        tf.profiler.experimental.stop()
        [profile] = Path(directory).glob("plugins/profile/*/*.xplane.pb")
        TARGET.write_bytes(gzip.compress(profile.read_bytes(), mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
