"""Two workers that train together: the one that is slow is found, with the line of its pipeline."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from benchmarks.jobs import free_ports
from pipediag.facts.job import job_of
from pipediag.session.store import load_session
from tests.capture.captured import environment

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json, os, time
import numpy as np
import tensorflow as tf

rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()

def read(number):
    time.sleep(0.025 if rank == 1 else 0.0)
    return np.full(4, number, "float32")

def parsed(number):
    return tf.ensure_shape(tf.numpy_function(read, [number], tf.float32), [4])

def rows(context):
    data = tf.data.Dataset.range(100_000)
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    return data.map(parsed).batch(8)

with strategy.scope():
    weights = tf.Variable(tf.zeros([4, 1]))

def replica(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - 1.0))
    [gradient] = tape.gradient(loss, [weights])
    summed = tf.distribute.get_replica_context().all_reduce("MEAN", gradient)
    weights.assign_sub(1e-9 * summed)
    return loss

@tf.function
def step(batch):
    return strategy.reduce("MEAN", strategy.run(replica, args=(batch,)), axis=None)

for batch in strategy.distribute_datasets_from_function(rows):
    step(batch)
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("job")
    (directory / "train.py").write_text(dedent(SCRIPT))
    hosts = [f"127.0.0.1:{port}" for port in free_ports(2)]
    workers = []
    for rank in range(2):
        task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": rank}}
        command = [sys.executable, "-m", "pipediag", "analyze", "-q", "--steps", "20"]
        workers.append(
            subprocess.Popen(
                [*command, "--budget", "0", "--timeout", "120", "train.py"],
                cwd=directory,
                env=environment(TF_CONFIG=json.dumps(task)),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    for one in workers:
        _, errors = one.communicate(timeout=180)
        assert one.returncode == 0, errors
    return directory / "reports" / "train"


def test_each_worker_has_a_directory_and_the_slow_one_is_named(reports: Path) -> None:
    assert sorted(one.name for one in reports.iterdir()) == ["worker-0", "worker-1"]
    job = job_of(load_session(one) for one in reports.iterdir())
    slow = job.straggler
    assert slow.worker.name == "worker-1"
    assert job.longer_classes(slow)[0][0] == "input_wait"
    line = next(n for n, text in enumerate(SCRIPT.splitlines(), 1) if ".map(" in text)
    # On a loaded machine tf.data's own figures may come too late to tell one operation's time.
    assert slow.verdict.line in (line, None)


def test_waiting_for_the_slow_worker_is_a_collective_on_the_other(reports: Path) -> None:
    session = load_session(reports / "worker-0")
    shares = session.breakdown
    assert max(shares, key=lambda name: shares[name].percent) == "collective"
    assert session.verdict.bottleneck == "transfer"
    assert session.script.outcome == "stopped"
