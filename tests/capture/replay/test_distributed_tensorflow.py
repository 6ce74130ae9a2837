"""A pipeline whose batches a tf.data service makes, in processes of a trial."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from pipediag.data_service import LocalService
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import json, os
    import tensorflow as tf
    from pipediag.capture.replay.graph import Graph
    from pipediag.capture.replay.rebuilding import rebuild
    from pipediag.capture.replay import NotReplayableError
    from pipediag.session.edits import Distribute

    def served(dataset, **given):
        last = [call.operation.id for _, call in Graph(dataset).calls()][-1]
        return rebuild(dataset, [Distribute(last, address=os.environ["ADDRESS"], **given)])

    def refused(dataset):
        try:
            served(dataset)
        except NotReplayableError as error:
            return str(error)

    def rows(dataset):
        return sorted(int(x) for batch in dataset for x in batch)

    numbers = tf.data.Dataset.range(40).shuffle(40).map(lambda i: i * 2).batch(8)
    drawn = tf.data.Dataset.range(40).map(lambda i: tf.random.uniform([], seed=3)).batch(8)
    results = {
        "elements": rows(served(numbers)),
        "spec": served(numbers).element_spec == numbers.element_spec,
        "drawn": refused(drawn),
        "shuffled": refused(tf.data.Dataset.range(40).shuffle(40, seed=3).batch(8)),
    }
    tf.random.set_seed(5)
    results["seeded"] = refused(tf.data.Dataset.range(40).shuffle(40).batch(8))
    print("RESULTS", json.dumps(results))
"""


@pytest.fixture
def service() -> Iterator[LocalService]:
    started = LocalService(2)
    yield started
    started.stop()
    assert psutil.Process().children() == []


def test_workers_make_the_same_elements(service: LocalService, capturing: Capturing) -> None:
    found = capturing(SCRIPT, {"ADDRESS": service.address}).results
    assert found["elements"] == list(range(0, 80, 2))
    assert found["spec"] is True
    for name in ("drawn", "shuffled", "seeded"):
        assert "seed" in found[name]


def test_its_processes_end_with_the_one_that_started_them() -> None:
    code = (
        "import time; from pipediag.data_service import LocalService\n"
        "started = LocalService(1); print(started._process.pid, flush=True)\n"
        "time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    worker = psutil.Process(int(parent.stdout.readline()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    give_up_at = time.monotonic() + 60.0
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < give_up_at, "a worker is left behind"
        time.sleep(0.1)
