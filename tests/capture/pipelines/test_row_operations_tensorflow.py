"""Functions of a map for single rows, rewritten for batches: found in a graph, and as a trial runs.

The functions stand in a file, are recorded from there, and run its rewritten text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.captured import told_by

pytestmark = pytest.mark.tensorflow

FUNCTIONS = {
    "bucket": "bucket(a, EDGES)",
    "buckets": '{"a": bucket(a, EDGES),\n            "b": bucket(b, EDGES)}',
    "mirrored": "tf.reduce_any(EDGES <= b)",
    "list": "tf.equal(a, [1.0, 2.0])",
    "product": "tf.math.reduce_max(EDGES * a, axis=0)",
    "mean": "tf.reduce_mean(EDGES - a)",
    "argmax": "tf.argmax(EDGES * a)",
    "maximum": "tf.maximum(a, EDGES)",
    "stack": "tf.stack([a, b, c])",
    "last": "tf.stack([a, b, c], axis=-1)",
    "table": "tf.reduce_sum(tf.stack([EDGES * a, b + EDGES]))",
    "concat": "tf.concat([tf.stack([a, b]), tf.stack([c, a])], 0)",
    "expand": "tf.expand_dims(b, 0)",
    "squeeze": "tf.squeeze(tf.expand_dims(b, 0), axis=0)",
    "squeeze the last": "tf.squeeze(tf.expand_dims(b, -1), -1)",
    "reshape": "tf.reshape(c, [1])",
    "slice": "tf.stack([a, b, c])[:2]",
    "slices": "EDGES * (tf.expand_dims(c, 0)[:1] + tf.reshape(tf.stack([a, b]), [2])[1:])",
    "loop": "cut_each({'a': tf.stack([a, b, c]), 'b': tf.stack([c, c, a])})",
    "alike": "tf.sqrt(a + b) * 2.0",
    "constant": "a * tf.reduce_sum(EDGES)",
    # A patch may guess wrong. What it writes is run and compared, so that nothing is confirmed.
    "nested": "tf.stack([[a, b], [b, c]])",
    "two calls": "(bucket(a, EDGES), bucket(b, 2.0))",
    "array": "tf.cast(np.arange(3.0, dtype='float32') == a, tf.int32)",
    "norm": "tf.linalg.norm(tf.stack([a, b], -1), axis=0)",
    "scalar": "tf.stack([tf.reduce_sum(a), b])",
    "size": "tf.cast(tf.size(tf.stack([a, b])), tf.float32) * a",
}
WRONG = {"nested", "two calls", "array", "norm", "scalar", "size"}

HEAD = """import numpy as np
import tensorflow as tf

EDGES = tf.constant([1.0, 2.0, 3.0])


def bucket(value, edges):
    return tf.reduce_sum(tf.cast(value >= edges, tf.int64))


def cut_each(parts):
    for key, size in (("a", 1), ("b", 2)):
        parts[key] = parts[key][:size]
    return parts
"""
ONE = """

def f(line):
    a, b, c = tf.io.decode_csv(line, [[0.0]] * 3)
    return {text}
"""
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
import tensorflow as tf
sys.path.insert(0, {folder!r})
from pipediag.capture.pipelines.functions import row_operations
from pipediag.capture.replay.replacing import attributes_set
from pipediag.capture.replay.sources import exchanged
from pipediag.patching.batch_forms import rows_rewritten
from pipediag.patching.source import NotPatchableError
from pipediag.patching.workspace import Workspace, current_file
from tests.factories import make_session
from tests.records import make_function

lines = tf.data.Dataset.from_tensor_slices(["1,2,3", "4,5,0", "2.5,0.5,7"])
for name, module in json.loads({modules!r}).items():
    function = __import__(module).f
    one = lines.map(function)
    rows = row_operations(one._functions()[0].function.graph)
    files = {{}}
    try:
        workspace = Workspace(make_session(), current_file)
        for path, changes in rows_rewritten(workspace, make_function(row_operations=rows)).items():
            files[path] = workspace.source(path).changed(changes).text
        with attributes_set(*exchanged(files)):
            batches = lines.batch(3).map(function)
        [batch] = batches
        expected = [np.array(part) for part in zip(*map(tf.nest.flatten, one))]
        same = [np.shape(a) == b.shape and np.allclose(a, b)
                for a, b in zip(tf.nest.flatten(batch), expected, strict=True)]
    except NotPatchableError:
        same = None
    except (ValueError, tf.errors.OpError):
        same = [False]
    again = lines.map(function).element_spec == one.element_spec
    listed = [[row.op, row.rank, row.operand, row.count] for row in rows]
    print(json.dumps({{
        "name": name, "same": same and bool(all(same)), "rows": listed, "again": again,
    }}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder: Path = tmp_path_factory.mktemp("rows")
    modules = {name: f"rows_{number}" for number, name in enumerate(FUNCTIONS)}
    for number, (name, module) in enumerate(modules.items()):
        # AutoGraph takes equal code at the same lines of two files for one function.
        text = "\n" * number + HEAD + ONE.format(text=FUNCTIONS[name])
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
    return told_by(PROGRAM.format(folder=str(folder), modules=json.dumps(modules)))


def test_a_batch_gets_what_its_rows_get(found: dict[str, Any]) -> None:
    assert found.keys() == FUNCTIONS.keys()
    assert {name: one for name, one in found.items() if not one["same"]}.keys() == WRONG
    assert all(one["again"] for one in found.values())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bucket", [["GreaterEqual", 0, 0, 1], ["Sum", 1, None, 1]]),
        ("mirrored", [["Any", 1, None, 1], ["LessEqual", 0, 1, 1]]),
        ("stack", [["Pack", 0, None, 1]]),
        ("reshape", [["Reshape", 0, None, 1]]),
        ("slice", [["Pack", 0, None, 1], ["StridedSlice", 1, None, 1]]),
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
