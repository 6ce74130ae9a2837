"""Steps that no function runs: their tables are those of the same step as a function, and training
goes on as if nobody listened."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

pytestmark = pytest.mark.tensorflow

STEPS = """
import json
import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_callbacks
from pipediag.capture.frameworks.tensorflow.tables.eager_steps import EagerSteps
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables
from pipediag.capture.runtime import UnreadableStepError

users = np.random.default_rng(0).zipf(1.5, (6, 8)) % 40
items = np.random.default_rng(1).integers(0, 30, (6, 8, 3))

def made(optimizer, by_function):
    keras.utils.set_random_seed(7)
    tables = {"user": tf.Variable(tf.random.normal((40, 4)), name="user"),
              "item": tf.Variable(tf.random.normal((30, 4)), name="item")}
    if optimizer == "by hand":
        def apply(pairs):
            for gradient, one in pairs:
                one.scatter_sub(tf.IndexedSlices(0.1 * gradient.values, gradient.indices))
    else:
        apply = keras.optimizers.get(optimizer).apply_gradients
    def loss_of(user, item, drawn):
        negative = tf.reduce_mean(tf.gather(tables["item"], drawn), 1)
        found = tf.reduce_mean(tf.nn.embedding_lookup(tables["item"], item), 1)
        found = tf.nn.dropout(found, 0.3)
        return tf.reduce_sum(tf.gather(tables["user"], user[:, 0]) * (found - negative))
    if by_function == "the loss":
        loss_of = tf.function(loss_of)
    def step(user, item, drawn):
        with tf.GradientTape() as tape:
            loss = loss_of(user, item, drawn)
        apply(list(zip(tape.gradient(loss, list(tables.values())), tables.values())))
        return loss
    return tables, tf.function(step) if by_function == "all" else step

def batch(number):
    drawn = np.random.randint(0, 30, (8, 2))
    parts = users[number][:, None], items[number], drawn
    return [tf.constant(part) for part in parts], drawn

def of(table):
    use = table.use
    return {"rows": table.record.rows, "gradient": use.gradient, "slots": use.slot_bytes,
        "writes": [use.writes_rows, use.writes_whole], "operations": use.whole_table_operations,
        "lookups": use.lookups, "dtype": table.passage and table.passage.dtype}

for optimizer in ("adam", "sgd", "adagrad", "by hand"):
    np.random.seed(5)
    _, function = made(optimizer, "all")
    function(*batch(0)[0])
    traced = {table.record.layer: of(table) for table in TracedTables([function]).tables}
    for by_function in ("none", "the loss"):
        results = []
        for listened in (False, True):
            np.random.seed(5)
            tables, step = made(optimizer, by_function)
            steps, losses, ids = EagerSteps(), [], []
            for number in range(6):
                arguments, drawn = batch(number)
                if listened and number >= 2:
                    steps.begin()
                if number == 4:
                    tf.constant(1.0) + 1.0  # a step that does something else first
                losses.append(float(step(*arguments)))
                if listened and number >= 2:
                    steps.end()
                    if number == 2:
                        read = steps.read()
                    else:
                        given = steps.given()
                        ids.append(given and {table.record.layer: sorted(np.concatenate(
                            [one.ids.ravel() for one in table.looked_up(given)]).tolist())
                            for table in read.tables if table.answers(given)})
                    expected = {"user": sorted(users[number].tolist()),
                        "item": sorted([*items[number].ravel().tolist(), *drawn.ravel().tolist()])}
                    if number == 5:
                        last = expected
            results.append([losses, np.random.random(), float(tf.random.normal(())),
                {name: one.numpy().tolist() for name, one in tables.items()}])
        print(json.dumps({"name": f"{optimizer}, function: {by_function}", "traced": traced,
            "eager": {table.record.layer: of(table) for table in read.tables},
            "same": results[0] == results[1], "ids": ids, "last": last,
            "left": len(op_callbacks.context.context().op_callbacks)}))

table = tf.Variable(tf.random.normal((40, 4)), name="user")

def reads_a_dataset_of_its_own():
    within = tf.data.Dataset.from_tensor_slices([1, 2, 3, 4]).map(lambda one: one + 1)
    within = within.shuffle(4).interleave(tf.data.Dataset.from_tensors, cycle_length=2)
    for ids in within.filter(lambda one: one > 0).batch(2).cache().repeat(2).prefetch(2):
        table.scatter_sub(tf.IndexedSlices(0.1 * tf.gather(table, ids), ids))

steps = EagerSteps()
steps.begin()
reads_a_dataset_of_its_own()
steps.end()
tables = [of(one) for one in steps.read().tables]
print(json.dumps({"name": "a dataset of its own", "tables": tables}))

class Strange:
    def hear(self, *_):
        raise RuntimeError("ours")

steps = EagerSteps()
steps.begin()
steps._listening._hear = Strange().hear
value = float(tf.constant(2.0) * 3.0)
steps.end()
try:
    steps.read()
except UnreadableStepError as lack:
    print(json.dumps({"name": "an error of ours", "value": value, "lack": str(lack)}))
steps = EagerSteps()
steps.begin()
tf.constant(2.0) * 3.0
steps.end()
try:
    steps.read()
except UnreadableStepError as lack:
    print(json.dumps({"name": "no variable", "lack": str(lack)}))
"""
OPTIMIZERS = ("adam", "sgd", "adagrad", "by hand")
KINDS = [f"{one}, function: {by}" for one in OPTIMIZERS for by in ("none", "the loss")]


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-c", STEPS], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return {one["name"]: one for one in map(json.loads, ended.stdout.splitlines())}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tables_are_those_of_the_step_as_a_function(told: dict[str, Any], kind: str) -> None:
    assert told[kind]["eager"] == told[kind]["traced"]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_that_were_looked_up(told: dict[str, Any], kind: str) -> None:
    first, otherwise, last = told[kind]["ids"]
    assert first is not None
    assert otherwise is None
    assert last == told[kind]["last"]


@pytest.mark.parametrize("kind", KINDS)
def test_training_and_random_numbers_are_the_same(told: dict[str, Any], kind: str) -> None:
    assert told[kind]["same"]
    assert told[kind]["left"] == 0


def test_a_step_may_read_a_dataset_of_its_own(told: dict[str, Any]) -> None:
    [table] = told["a dataset of its own"]["tables"]
    assert (table["rows"], table["lookups"], table["writes"]) == (40, 4, [True, False])


def test_an_error_of_ours_is_no_error_of_the_step(told: dict[str, Any]) -> None:
    assert told["an error of ours"]["value"] == 6.0
    assert "RuntimeError: ours" in told["an error of ours"]["lack"]


def test_a_step_without_a_variable_has_no_tables(told: dict[str, Any]) -> None:
    assert "variable" in told["no variable"]["lack"]
