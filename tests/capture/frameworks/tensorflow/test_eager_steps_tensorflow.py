"""Steps that no function runs are read from what a thread runs, and go on as if nobody listened."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.frameworks.programs import told_by

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
        "whole": use.writes_whole, "operations": use.whole_table_operations,
        "lookups": use.lookups, "dtype": table.passage and table.passage.dtype}

for optimizer in ("adam", "by hand"):
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
KINDS = [f"{one}, function: {by}" for one in ("adam", "by hand") for by in ("none", "the loss")]


@pytest.fixture(scope="module")
def steps() -> dict[str, Any]:
    return told_by(STEPS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_tells_its_tables_and_ids_and_trains_as_if_nobody_listened(
    steps: dict[str, Any], kind: str
) -> None:
    step = steps[kind]
    assert step["eager"] == step["traced"]
    first, otherwise, last = step["ids"]
    assert first is not None
    assert (otherwise, last) == (None, step["last"])
    assert (step["same"], step["left"]) == (True, 0)


def test_a_step_may_read_a_dataset_of_its_own(steps: dict[str, Any]) -> None:
    [table] = steps["a dataset of its own"]["tables"]
    assert (table["rows"], table["lookups"], table["whole"]) == (40, 4, False)


def test_an_error_of_ours_is_no_error_of_the_step(steps: dict[str, Any]) -> None:
    assert steps["an error of ours"]["value"] == 6.0
    assert "RuntimeError: ours" in steps["an error of ours"]["lack"]


def test_a_step_without_a_variable_has_no_tables(steps: dict[str, Any]) -> None:
    assert "variable" in steps["no variable"]["lack"]


SCRIPT = """
import json
import os
import threading
import weakref
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_callbacks
from pipediag.capture.frameworks.tensorflow.tables import listening
from pipediag.capture.frameworks.tensorflow.tables.listening import Place, SomeTensors
from pipediag.capture.frameworks.tensorflow.tables.eager_steps import EagerSteps
from pipediag.capture.runtime import UnreadableStepError

def say(name, **facts):
    print(json.dumps({"name": name, **facts}))
    op_callbacks.clear_op_callbacks()
    execute.execute = execute.quick_execute

def left():
    return {"callbacks": len(context.context().op_callbacks), "patched": execute.execute.__name__}

def begun(told=None):
    one = listening.Listening(told or listening.WholeStep().hear)
    one.begin()
    return one

def elsewhere(call):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()

one = tf.constant(1.0)
function = tf.function(lambda x: tf.math.log(x) * 2.0)
function(one)

heard = begun()
elsewhere(heard.end)
one + one
say("ended on another thread", **left())

heard = begun()
elsewhere(heard.end)
tf.function(lambda x: x + 1.0).get_concrete_function(one)
say("ended on another thread, then a trace", **left())

heard = begun()
with tf.Graph().as_default():
    heard.end()
say("ended in a graph", **left())

later, told = listening.WholeStep(), listening.WholeStep()
former = begun(told.hear)
elsewhere(former.end)
heard = begun(later.hear)
one + one
heard.end()
one + one
say("another one begins before it has left", **left(),
    heard=[len(told.operations), len(later.operations)], lack=heard.lack)

def others():
    op_callbacks.add_op_callback(theirs)
    begun().end()

def theirs(*_, **__):
    pass

elsewhere(others)
say("callbacks of the script on another thread", **left())

seen = []
def second(kind, *_, **__):
    seen.append(kind)
heard = begun()
op_callbacks.add_op_callback(second)
elsewhere(heard.end)
one + one
one * one
op_callbacks.remove_op_callback(second)
between = len(context.context().op_callbacks)
one + one
say("another callback behind it", seen=seen, between=between, **left())

step = listening.WholeStep()
heard = begun(step.hear)
for _ in range(3):
    one + one
complete = SomeTensors(step.operations, {"second": Place(1, made=True, index=0)})
heard.end()
begun(complete.hear)
one + one
after_one = left()["callbacks"]
one + one
say("complete", found=float(complete.found["second"]), after_one=after_one, **left())

other = SomeTensors(step.operations, {"second": Place(1, made=True, index=0)})
begun(other.hear)
one * one
say("another step", other=other.other, **left())

def unread(name, operations, meanwhile=lambda: None):
    steps = EagerSteps()
    steps.begin()
    for _ in range(operations):
        one + one
    meanwhile()
    facts = left()
    steps.end()
    try:
        steps.read()
    except UnreadableStepError as lack:
        say(name, lack=str(lack), **facts)

most, listening.MOST_OPERATIONS = listening.MOST_OPERATIONS, 5
unread("too many", 6)
listening.MOST_OPERATIONS = most
seconds, listening.MOST_SECONDS = listening.MOST_SECONDS, 0
unread("too long", 1)
listening.MOST_SECONDS = seconds
unread("silenced", 1, op_callbacks.clear_op_callbacks)

step = listening.WholeStep()
heard = begun(step.hear)
variable = tf.Variable(tf.zeros((1000,)))
handle = weakref.ref(variable.handle)
del variable
say("a variable of the step's own", kept=handle() is not None, operations=len(step.operations))
heard.end()

def checked(order):
    for what in order:
        if what == "ours":
            heard = begun()
        else:
            tf.debugging.enable_check_numerics()
    found = []
    for log in (tf.function(lambda x: tf.math.log(x) * 2.0), tf.math.log):
        try:
            found.append(float(log(-one)))
        except Exception as error:
            found.append(type(error).__name__)
    tf.debugging.disable_check_numerics()
    heard.end()
    return found

say("numerics checked from before", errors=checked(["theirs", "ours"]))
say("numerics checked from then on", errors=checked(["ours", "theirs"]))

table = tf.Variable(tf.random.normal((40, 4)))
rows = tf.constant([3, 4])

@tf.custom_gradient
def looked_up(weight):
    def gradient(upstream):
        tf.gather(table, rows)
        return upstream
    return tf.identity(weight), gradient

step = listening.WholeStep()
heard = begun(step.hear)
with tf.GradientTape() as tape:
    loss = looked_up(tf.reduce_sum(tf.gather(table, rows)))
tape.gradient(loss, [table])
heard.end()
say("a gradient of the script's own",
    gathers=[each.in_gradients for each in step.operations if each.type == "ResourceGather"])
"""
GONE = {"callbacks": 0, "patched": "quick_execute"}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    return told_by(SCRIPT)


@pytest.mark.parametrize(
    ("when", "facts"),
    [
        ("ended on another thread", {}),
        ("ended on another thread, then a trace", {}),
        ("ended in a graph", {}),
        ("another one begins before it has left", {"heard": [0, 1], "lack": None}),
        ("another callback behind it", {"seen": ["AddV2", "Mul"], "between": 1}),
        ("complete", {"found": 2.0, "after_one": 1}),
        ("another step", {"other": True}),
        ("callbacks of the script on another thread", {"patched": "execute_with_callbacks"}),
    ],
)
def test_it_is_gone_wherever_it_ends_and_other_callbacks_stay(
    told: dict[str, Any], when: str, facts: dict[str, Any]
) -> None:
    assert told[when] == {**GONE, **facts}


@pytest.mark.parametrize(
    ("why", "says"), [("too many", "more than"), ("too long", "s, so"), ("silenced", "removed")]
)
def test_it_says_why_a_step_can_not_be_read(told: dict[str, Any], why: str, says: str) -> None:
    assert says in told[why]["lack"]
    assert {key: told[why][key] for key in GONE} == GONE


def test_what_the_step_makes_and_drops_is_not_kept(told: dict[str, Any]) -> None:
    assert told["a variable of the step's own"]["operations"] > 0
    assert not told["a variable of the step's own"]["kept"]


@pytest.mark.parametrize("when", ["from before", "from then on"])
def test_checks_of_numerics_stay_in_effect(told: dict[str, Any], when: str) -> None:
    errors = told[f"numerics checked {when}"]["errors"]
    assert errors == ["InvalidArgumentError", "InvalidArgumentError"]


def test_gradients_of_the_scripts_own_are_gradients(told: dict[str, Any]) -> None:
    assert told["a gradient of the script's own"]["gathers"] == [False, True]
