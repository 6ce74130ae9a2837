"""Records `graph_loop.xplane.pb.gz`: steps of a loop over a dataset inside a tf.function, on a CPU.

    python tests/trace/data/make_graph_loop_profile.py

The map sleeps 1 ms for each of 4 examples a batch, so most of a step is input wait. The profile
lies within one call, which passes through the dataset again and again. What test_graph_loop.py
expects of the file follows from this script, whatever the machine.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import threading
import time
from pathlib import Path

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf

TARGET = Path(__file__).with_name("graph_loop.xplane.pb.gz")
STEPS_IN_A_PASS, PASSES = 8, 40

weights = tf.Variable(tf.zeros([6, 1]))


def slow(rows: np.ndarray) -> np.ndarray:
    time.sleep(0.001)
    return rows


def dataset() -> tf.data.Dataset:
    rows = np.random.default_rng(0).random((4 * STEPS_IN_A_PASS, 6)).astype("float32")
    return (
        tf.data.Dataset.from_tensor_slices(rows, name="rows")
        .map(lambda row: tf.numpy_function(slow, [row], tf.float32), name="decode")
        .map(lambda row: tf.ensure_shape(row, (6,)), name="shape")
        .batch(4, name="batch")
        .prefetch(2, name="ahead")
    )


@tf.function  # type: ignore[untyped-decorator]
def train(batches: tf.data.Dataset) -> None:
    for _ in tf.range(PASSES):
        for batch in batches:
            weights.assign_sub(0.01 * tf.reduce_mean(batch, axis=0)[:, None])


def main() -> None:
    batches = dataset()
    call = train.get_concrete_function(batches)
    thread = threading.Thread(target=call, args=(batches,))
    thread.start()
    with tempfile.TemporaryDirectory() as directory:
        time.sleep(0.3)
        options = tf.profiler.experimental.ProfilerOptions(host_tracer_level=2)
        tf.profiler.experimental.start(directory, options=options)
        time.sleep(0.15)
        tf.profiler.experimental.stop()
        assert thread.is_alive()
        thread.join()
        [profile] = Path(directory).glob("plugins/profile/*/*.xplane.pb")
        TARGET.write_bytes(gzip.compress(profile.read_bytes(), mtime=0))
    print(f"{TARGET}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
