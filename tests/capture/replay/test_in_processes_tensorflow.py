"""Maps whose Python is called in processes: what they give, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json
import os
import numpy as np
import tensorflow as tf
from pipediag.capture.replay.graph import Node
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.replacing import called_in_processes
from pipediag.in_chunks import for_each_row, in_processes

def mapped(function, kind=tf.numpy_function):
    numbers = tf.data.Dataset.range(12)
    return numbers.map(lambda n: kind(function, [n], tf.int64), num_parallel_calls=2)

def square(n):
    return np.int64(n * n)

def fails(n):
    if n == 5:
        raise ValueError("five")
    return np.int64(n)

def whose(n):
    return np.int64(os.getpid())

in_order = [int(n) for n in mapped(in_processes(square, 2))]
pids = {int(n) for n in mapped(in_processes(whose, 2))}
try:
    list(mapped(in_processes(fails, 2)))
    failed = ""
except tf.errors.OpError as error:
    failed = str(error)
batches = tf.data.Dataset.range(12).batch(4)
rows = in_processes(for_each_row(square), 2)
batched = [each.numpy().tolist() for each in batches.map(
    lambda n: tf.numpy_function(rows, [n], tf.int64))]
slow = in_processes(lambda n: (__import__("time").sleep(60), n)[1], 1, limit_s=0.2)
try:
    slow(1)
    limit = ""
except TimeoutError as error:
    limit = str(error)
rng, seen = np.random.default_rng(1), set()

def draws(n):
    return np.int64(rng.integers(9))

def made(function, kind=tf.numpy_function):
    node = Node([], make=lambda _: mapped(function, kind))
    called_in_processes(node, 2)
    try:
        return [int(n) for n in node.make([])]
    except NotReplayableError as refused:
        return str(refused)

print(json.dumps({
    "name": "found", "made": made(square), "draws": made(draws),
    "eager": made(square, tf.py_function),
    "in_order": in_order, "others": os.getpid() not in pids, "processes": len(pids),
    "failed": "five" in failed, "batched": batched, "limit": bool(limit),
}), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return told_by(SCRIPT)["found"]


def test_processes_give_the_same_elements_in_order(told: dict[str, Any]) -> None:
    assert told["in_order"] == [n * n for n in range(12)]
    assert told["batched"] == [[n * n for n in range(four, four + 4)] for four in (0, 4, 8)]
    assert told["others"]
    assert told["processes"] == 2


def test_what_fails_or_never_answers_is_an_error(told: dict[str, Any]) -> None:
    assert told["failed"]
    assert told["limit"]


def test_a_trial_refuses_what_processes_can_t_share(told: dict[str, Any]) -> None:
    assert told["made"] == told["in_order"]
    assert "`rng`" in told["draws"]
    assert "TensorFlow" in told["eager"]
