"""What mapped functions of real pipelines hand out in place of ids."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
    found = describe_function(data.map(function), None).widenings
    told = [[one.kind, one.rows, one.ids_bytes, one.bytes, one.label] for one in found]
    print(json.dumps([function.__name__, told]))
"""


def test_lookups_and_one_hot_labels() -> None:
    said = subprocess.run(
        [sys.executable, "-c", MAPS], capture_output=True, text=True, check=False, timeout=120
    )
    assert said.returncode == 0, said.stderr
    told = dict(json.loads(line) for line in said.stdout.splitlines() if line.startswith("["))

    vectors = [["lookup", 1000, 20, 320, False]]
    assert told == {
        "from_numpy": vectors,
        "from_constant": vectors,
        "from_variable": vectors,
        "label_one_hot": [["one-hot", 1000, 8, 4000, True]],
        "input_one_hot": [["one-hot", 10, 20, 200, False]],
        "mean_of_vectors": [],
        "own_rows": [],
        "columns": [],
    }
