"""What mapped functions of real pipelines hand out in place of ids, and the arrays in them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from pipediag.rules.embedding import graph_constants

pytestmark = pytest.mark.tensorflow

MAPS = """
import json
import numpy as np
import tensorflow as tf
from pipediag.capture.pipelines.functions import describe_function

numbers = np.zeros((1000, 16), "float32")
constant, variable = tf.constant(numbers), tf.Variable(numbers)

def from_numpy(ids, label): return tf.gather(numbers, ids), label
def from_constant(ids, label): return tf.nn.embedding_lookup(constant, ids), label
def from_variable(ids, label): return tf.nn.embedding_lookup(variable, ids), label
def label_one_hot(ids, label): return ids, tf.one_hot(label, 1000)
def input_one_hot(ids, label): return tf.one_hot(ids, 10), label
def mean_of_vectors(ids, label): return tf.reduce_mean(tf.gather(numbers, ids), 0), label
def own_rows(ids, label): return tf.gather(tf.cast(ids, "float32")[:, None], ids), label
def columns(ids, label): return tf.gather(numbers, ids, axis=1), label

data = tf.data.Dataset.from_tensor_slices((np.zeros((8, 5), "int32"), np.zeros(8, "int64")))
for function in (from_numpy, from_constant, from_variable, label_one_hot, input_one_hot,
                 mean_of_vectors, own_rows, columns):
    found = describe_function(data.map(function), None)
    told = [[one.kind, one.rows, one.ids_bytes, one.bytes, one.label] for one in found.widenings]
    print(json.dumps([function.__name__, told, found.constant_bytes]))

too_large = np.zeros(2**29, "float32")
try:
    data.map(lambda ids, label: tf.gather(too_large, ids))
except ValueError as refused:
    print(json.dumps(["refused", f"ValueError: {refused}", 0]))
"""

Told = dict[str, tuple[Any, int]]


@pytest.fixture(scope="module")
def told() -> Told:
    said = subprocess.run(
        [sys.executable, "-c", MAPS], capture_output=True, text=True, check=False, timeout=120
    )
    assert said.returncode == 0, said.stderr
    lines = [json.loads(line) for line in said.stdout.splitlines() if line.startswith("[")]
    return {name: (made, constants) for name, made, constants in lines}


def test_lookups_and_one_hot_labels(told: Told) -> None:
    vectors = [["lookup", 1000, 20, 320, False]]
    assert {name: made for name, (made, _) in told.items() if name != "refused"} == {
        "from_numpy": vectors,
        "from_constant": vectors,
        "from_variable": vectors,
        "label_one_hot": [["one-hot", 1000, 8, 4000, True]],
        "input_one_hot": [["one-hot", 10, 20, 200, False]],
        "mean_of_vectors": [],
        "own_rows": [],
        "columns": [],
    }


def test_an_array_that_a_function_reads_is_a_constant_of_its_graph(told: Told) -> None:
    constants = {name: held for name, (_, held) in told.items()}

    assert 64_000 <= constants["from_numpy"] < 65_000
    assert constants["from_constant"] < 1_000
    assert constants["from_variable"] < 1_000


def test_what_tensorflow_says_of_one_of_two_gib_is_known(told: Told) -> None:
    refusal, _ = told["refused"]
    assert graph_constants.REFUSED.search(refusal), refusal
