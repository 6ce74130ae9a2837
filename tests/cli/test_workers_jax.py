"""Two processes of Keras on JAX that train together leave sessions, and the slow one is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks.jobs import free_ports
from pipediag.facts.job import job_of
from pipediag.session.store import load_session
from tests.capture.captured import environment

pytestmark = pytest.mark.jax

SCRIPT = """
import os, sys, time
import jax

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=rank)
import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
keras.distribution.set_distribution(keras.distribution.DataParallel())

def slow(row):
    if rank == 1:
        time.sleep(0.004)
    return row

def row(number):
    data = tf.numpy_function(slow, [tf.ones(16) * tf.cast(number, tf.float32)], tf.float32)
    data.set_shape([16])
    return data, tf.cast(number % 2, tf.float32)

data = tf.data.Dataset.range(32 * 10_000).shard(2, rank).map(row).batch(32)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(data, epochs=2, verbose=2)
"""


def test_the_worker_with_the_slow_pipeline_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(dedent(SCRIPT))
    [port] = free_ports(1)
    own = ["analyze", "-q", "--budget", "0", "--timeout", "90", "train.py", f"127.0.0.1:{port}"]
    workers = []
    for rank in range(2):
        job = {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"}
        workers.append(
            subprocess.Popen(
                [sys.executable, "-m", "pipediag", *own],
                cwd=tmp_path,
                env=environment(KERAS_BACKEND="jax", **job),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )
    for one in workers:
        # The first to end ends the other: JAX's coordination does not let one go on alone.
        one.wait(timeout=180)
    job = job_of(load_session(one) for one in sorted((tmp_path / "reports" / "train").iterdir()))
    assert [one.worker.name for one in job.steps] == ["rank-0", "rank-1"]
    assert (job.straggler or job.longest).worker.name == "rank-1"
    slow = job.steps[1]
    assert slow.verdict.bottleneck == "input"
    line = next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if ".map(row)" in text)
    assert slow.verdict.line in (line, None)
    assert len({one.window for one in job.steps}) == 1
