"""Operations of a map's function that a batch needs in another form: found, and made so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import json
import numpy as np
import tensorflow as tf
from pipediag.capture.pipelines.rows import made_for_batches, row_operations
from pipediag.capture.replay.replacing import attributes_set

EDGES = tf.constant([1.0, 2.0, 3.0])
LINES = ["1,2,3", "4,5,0", "2.5,0.5,7"]

def bucket(value, edges):
    return tf.reduce_sum(tf.cast(value >= edges, tf.int64))

FUNCTIONS = {
    "bucket": lambda a, b, c: bucket(a, EDGES),
    "mirrored": lambda a, b, c: tf.reduce_any(EDGES <= b),
    "list": lambda a, b, c: tf.equal(a, [1.0, 2.0]),
    "product": lambda a, b, c: tf.math.reduce_max(EDGES * a, axis=0),
    "mean": lambda a, b, c: tf.reduce_mean(EDGES - a),
    "argmax": lambda a, b, c: tf.argmax(EDGES * a),
    "maximum": lambda a, b, c: tf.maximum(a, EDGES),
    "stack": lambda a, b, c: tf.stack([a, b, c]),
    "last": lambda a, b, c: tf.stack([a, b, c], axis=-1),
    "table": lambda a, b, c: tf.reduce_sum(tf.stack([EDGES * a, EDGES * b])),
    "row of a table": lambda a, b, c: tf.reduce_sum(tf.stack([EDGES * a, EDGES * b]), axis=1),
    "concat": lambda a, b, c: tf.concat([tf.stack([a, b]), tf.stack([c, a])], 0),
    "expand": lambda a, b, c: tf.expand_dims(b, 0),
    "norm": lambda a, b, c: tf.linalg.norm(tf.stack([a, b], -1), axis=0),
    "reshape": lambda a, b, c: tf.reshape(c, [1]),
    "alike": lambda a, b, c: tf.sqrt(a + b) * 2.0,
    "constant": lambda a, b, c: a * tf.reduce_sum(EDGES),
    "size": lambda a, b, c: tf.cast(tf.size(tf.stack([a, b])), tf.float32) * a,
}

def parsed(function):
    return lambda line: function(*tf.io.decode_csv(line, [[0.0]] * 3))

lines = tf.data.Dataset.from_tensor_slices(LINES)
for name, function in FUNCTIONS.items():
    one = lines.map(parsed(function))
    rows = row_operations(one._functions()[0].function.graph)
    with attributes_set(*made_for_batches()):
        batches = lines.batch(3).map(parsed(function))
    expected = np.array([each.numpy() for each in one])
    [batch] = [each.numpy() for each in batches]
    same = batch.shape == expected.shape and bool(np.allclose(batch, expected))
    listed = [[row.op, row.rank, row.operand, row.count] for row in rows]
    print(json.dumps({"name": name, "same": same, "rows": listed}))
again = lines.map(parsed(FUNCTIONS["stack"])).element_spec.shape
print(json.dumps({"name": "again", "shape": again.as_list()}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    # What `python -c` runs is no code of a user's file.
    path = tmp_path_factory.mktemp("rows") / "script.py"
    path.write_text(SCRIPT, encoding="utf-8")
    return told_by(f"import runpy; runpy.run_path({str(path)!r})")


def test_a_batch_gets_what_its_rows_get(found: dict[str, Any]) -> None:
    # The number of a row's values is not told by the shape of a batch, and what another function
    # of TensorFlow's sums up stays as it is.
    wrong = [name for name, one in found.items() if one.get("same") is False]
    assert wrong == ["norm", "size"]
    assert found["again"]["shape"] == [3]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bucket", [["GreaterEqual", 0, 0, 1], ["Sum", 1, None, 1]]),
        ("mirrored", [["Any", 1, None, 1], ["LessEqual", 0, 1, 1]]),
        ("stack", [["Pack", 0, None, 1]]),
        ("table", [["Mul", 0, 1, 2], ["Pack", 1, None, 1], ["Sum", 2, None, 1]]),
        ("reshape", [["Reshape", 0, None, 1]]),
        ("last", []),
        ("norm", []),
        ("alike", []),
        ("constant", []),
    ],
)
def test_what_needs_another_form_is_found(
    found: dict[str, Any], name: str, expected: list[list[Any]]
) -> None:
    assert sorted(found[name]["rows"]) == expected
