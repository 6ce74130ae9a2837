"""Run jobs of several workers with planted causes, and say which of them `show` names rightly.

    python -m benchmarks.jobs [NAME...] [--keep DIR]

Each job is one script, started for each worker as a launcher would, on the loopback interface.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from pipediag.facts.job import Job, job_of
from pipediag.reporters.terminal.job import sentences, title
from pipediag.session.store import load_session

LIMIT_S = 90.0

SCRIPT = """
import json, os, sys, time
import numpy as np
import tensorflow as tf

CAUSE = sys.argv[1]
task = json.loads(os.environ["TF_CONFIG"])
rank, workers = task["task"]["index"], len(task["cluster"]["worker"])
last = rank == workers - 1
strategy = tf.distribute.MultiWorkerMirroredStrategy()
WIDTH = 3_000 if CAUSE == "large_gradients" else 400
LOCAL = 4 if CAUSE == "batch_not_scaled" else 128
EPOCHS = 40
steps = 0


def parse(number):
    if CAUSE == "slow_input" and last:
        time.sleep(0.002)
    return np.full(16, number, "float32")


def parsed(number):
    return tf.ensure_shape(tf.numpy_function(parse, [number], tf.float32), [16])


def rows(context):
    data = tf.data.Dataset.range(workers * LOCAL * 50)
    if CAUSE != "all_read_all":
        data = data.shard(context.num_input_pipelines, context.input_pipeline_id)
    if CAUSE == "uneven_shards" and last:
        data = data.take(LOCAL * 20)
    return data.map(parsed, num_parallel_calls=4).batch(LOCAL, drop_remainder=True).prefetch(4)


with strategy.scope():
    first = tf.Variable(tf.random.normal([16, WIDTH], stddev=0.01))
    second = tf.Variable(tf.random.normal([WIDTH, WIDTH], stddev=0.01))
    optimizer = tf.keras.optimizers.SGD(1e-6)
    optimizer.build([first, second])


def replica(batch):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(batch @ first)
        for _ in range(1 if CAUSE == "large_gradients" else 3):
            hidden = tf.nn.relu(hidden @ second)
        loss = tf.reduce_mean(tf.square(hidden))
    gradients = tape.gradient(loss, [first, second])
    context = tf.distribute.get_replica_context()
    summed = context.all_reduce("MEAN", gradients)
    for variable, gradient in zip([first, second], summed):
        variable.assign_sub(1e-6 * gradient)
    return loss


@tf.function
def step(batch):
    return strategy.run(replica, args=(batch,))


@tf.function
def score(batch):
    return tf.reduce_sum(tf.nn.relu(batch @ first) @ second)


def written(loss):
    global steps
    steps += 1
    if CAUSE == "slow_host" and last:
        time.sleep(0.1)
    if CAUSE == "killed" and last and steps == 45:
        os.kill(os.getpid(), 9)


evaluated = tf.data.Dataset.range(20_000).map(parsed).batch(50)
if CAUSE in ("each_makes_all", "batch_not_scaled"):
    whole = tf.data.Dataset.range(workers * LOCAL * 50).map(parsed, num_parallel_calls=4)
    batches = strategy.experimental_distribute_dataset(whole.batch(workers * LOCAL).prefetch(4))
else:
    batches = strategy.distribute_datasets_from_function(rows)
for epoch in range(EPOCHS):
    for batch in batches:
        written(step(batch))
    if CAUSE == "evaluates_alone" and rank == 0:
        for batch in evaluated.take(300):
            score(batch)
            time.sleep(0.01)
"""


@dataclass(frozen=True)
class _Planted:
    workers: int
    right: Callable[[Job], bool]
    same_window: bool = True
    """All workers measure the same steps."""


def _waits_for(name: str, *classes: str) -> Callable[[Job], bool]:
    def right(job: Job) -> bool:
        slowest = job.straggler
        return (
            slowest is not None
            and slowest.worker.name == name
            and job.longer_classes(slowest)[0][0] in classes
        )

    return right


def _exchanges(job: Job) -> bool:
    return job.straggler is None and job.exchange_percent >= 20.0


def _is_healthy(job: Job) -> bool:
    silent = job.straggler, job.uneven_batches, job.evaluates_alone
    return not any(silent) and job.together and job.sharding == "before the work"


JOBS: Mapping[str, _Planted] = {
    "slow_input": _Planted(4, _waits_for("worker-3", "input_wait")),
    "slow_host": _Planted(2, _waits_for("worker-1", "python", "unattributed")),
    "uneven_shards": _Planted(2, lambda job: job.uneven_batches == (20, 50), same_window=False),
    "evaluates_alone": _Planted(
        2,
        lambda job: job.evaluates_alone is not None and job.evaluates_alone.worker.rank == 0,
    ),
    "large_gradients": _Planted(2, _exchanges),
    "all_read_all": _Planted(2, lambda job: job.sharding == "none"),
    "killed": _Planted(2, lambda job: job.missing == 0, same_window=False),
    "each_makes_all": _Planted(2, lambda job: job.sharding == "behind the work"),
    "batch_not_scaled": _Planted(
        2, lambda job: {one.divided_batch for one in job.steps} == {8} and _exchanges(job)
    ),
    "healthy": _Planted(2, _is_healthy),
}


@click.command()
@click.argument("names", nargs=-1)
@click.option("--keep", type=click.Path(path_type=Path), default=Path("reports/jobs"))
def main(names: tuple[str, ...], keep: Path) -> None:
    """Print a line for each job, and how many were right."""
    wrong = 0
    for name in names or JOBS:
        planted = JOBS[name]
        directory = keep.absolute() / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        _run(name, planted, directory)
        sessions = sorted((directory / "reports" / "train").glob("*"))
        job = job_of(load_session(one) for one in sessions)
        windows = {one.window for one in job.steps}
        right = planted.right(job) and (len(windows) == 1 or not planted.same_window)
        wrong += not right
        click.echo(f"{name:16} {sorted(windows)} {'right' if right else 'WRONG'}  {title(job)}")
        for sentence in sentences(job):
            click.echo(f"{'':24}{sentence}")
    click.echo(f"{len(names or JOBS) - wrong} of {len(names or JOBS)} right")


def _run(name: str, planted: _Planted, directory: Path) -> None:
    """Run all workers of a job to their ends; one is killed where that is planted."""
    (directory / "train.py").write_text(SCRIPT, encoding="utf-8")
    hosts = [f"127.0.0.1:{port}" for port in free_ports(planted.workers)]
    own = ["analyze", "-q", "--budget", "0", "--timeout", f"{LIMIT_S:g}", "train.py", name]
    workers = []
    for rank in range(planted.workers):
        task = {"cluster": {"worker": hosts}, "task": {"type": "worker", "index": rank}}
        variables = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3"}
        # A crash then prints the stacks of all threads.
        variables["PYTHONFAULTHANDLER"] = "1"
        with (directory / f"worker-{rank}.txt").open("w") as output:
            workers.append(
                subprocess.Popen(
                    [sys.executable, "-m", "pipediag", *own],
                    cwd=directory,
                    env=variables,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
    for one in workers:
        one.wait(LIMIT_S + 60)


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback interface that nothing listened on a moment ago."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in bound]


if __name__ == "__main__":
    main()
