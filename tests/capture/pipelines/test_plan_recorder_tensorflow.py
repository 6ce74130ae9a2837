"""The recorded plan of a script that makes many datasets."""

from __future__ import annotations

import pytest

from tests.capture.captured import Captured
from tests.capture.conftest import Capturing

pytestmark = pytest.mark.tensorflow

SCRIPT = """
    import os
    import numpy as np
    import tensorflow as tf
    import keras

    os.makedirs("shards")
    for shard in range(2):
        with tf.io.TFRecordWriter(f"shards/{shard}.tfrecord") as writer:
            writer.write(b"row")
        open(f"shards/{shard}.txt", "w").write("1\\n2\\n")

    def scale(x):
        return tf.cast(x, tf.float32) * 2.0

    def slow(x):
        return np.float32(x)

    def call_numpy(x):
        return tf.numpy_function(slow, [x], tf.float32)

    def rows():
        yield from range(12)

    source = tf.data.Dataset.range(12)  # source
    mapped = source.map(scale, num_parallel_calls=3)  # parallel map
    kept = mapped.shuffle(6, name="mine")  # named
    batched = kept.batch(4, drop_remainder=True)  # batch
    fetched = batched.prefetch(tf.data.AUTOTUNE)  # prefetch
    for _ in fetched:
        pass

    in_python = source.map(call_numpy)  # python map
    by_lambda = source.map(lambda x: tf.random.uniform([]) + tf.cast(x, tf.float32))  # random map
    both = tf.data.Dataset.zip(mapped, by_lambda)  # zip

    files = tf.data.Dataset.list_files("shards/*.tfrecord", shuffle=False)  # list files
    read = files.interleave(tf.data.TFRecordDataset, cycle_length=2)  # interleave
    direct = tf.data.TFRecordDataset(["shards/0.tfrecord", "shards/1.tfrecord"])  # reader
    one_file = tf.data.TextLineDataset("shards/0.txt")  # text reader

    def lines(path):
        text = tf.data.TextLineDataset(path)  # inner reader
        return text.skip(1)  # inner skip

    texts = tf.data.Dataset.from_tensor_slices(["shards/0.txt", "shards/1.txt"])  # paths
    flat = texts.flat_map(lines)  # flat map
    assert len(list(flat)) == 2
    assert len(list(read)) == 2

    generated = tf.data.Dataset.from_generator(  # generator
        rows, output_signature=tf.TensorSpec([], tf.int64)
    )
    choices = tf.data.Options()
    choices.autotune.enabled = False
    optioned = generated.batch(3).with_options(choices).repeat(2)
    for batch in optioned:  # optioned loop
        pass

    def broken(x):
        tf.data.Dataset.range(x).skip(1)  # lost
        raise ValueError("no dataset here")

    try:
        source.flat_map(broken)  # refused
    except ValueError as error:
        print("refused", error)

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(np.zeros((8, 1)), np.zeros((8, 1)), batch_size=4, verbose=0)  # fit
"""


@pytest.fixture(scope="module")
def plan(capturing: Capturing) -> Captured:
    return capturing(SCRIPT)


def test_script_runs_to_its_end(plan: Captured) -> None:
    assert plan.status == 0, plan.stderr
    assert plan.recording.outcome == "finished"
    assert plan.recording.exit_status == 0
    assert plan.stdout.startswith("refused ")


def test_nothing_was_left_out(plan: Captured) -> None:
    assert plan.recording.notes == []


@pytest.mark.parametrize(
    ("mark", "kind", "parents"),
    [
        ("source", "range", []),
        ("parallel map", "map", ["source"]),
        ("named", "shuffle", ["parallel map"]),
        ("batch", "batch", ["named"]),
        ("prefetch", "prefetch", ["batch"]),
        ("python map", "map", ["source"]),
        ("zip", "zip", ["parallel map", "random map"]),
        ("list files", "list_files", []),
        ("reader", "TFRecordDataset", []),
        ("text reader", "TextLineDataset", []),
        ("flat map", "flat_map", ["paths"]),
        ("generator", "from_generator", []),
    ],
)
def test_operations_have_lines_and_parents(
    plan: Captured, mark: str, kind: str, parents: list[str]
) -> None:
    operation = plan.operation(mark)

    assert operation.kind == kind
    assert operation.file == str(plan.script)
    assert operation.parent_ids == [plan.operation(parent).id for parent in parents]
    assert not operation.made_by_framework
    assert operation.inside_function_of is None


def test_users_name_is_kept(plan: Captured) -> None:
    assert plan.operation("named").name == "mine"
    assert plan.operation("batch").name == f"pipediag_{plan.operation('batch').id}"


@pytest.mark.parametrize(
    ("mark", "parameters"),
    [
        ("parallel map", {"num_parallel_calls": 3}),
        ("named", {"buffer_size": 6}),
        ("batch", {"batch_size": 4, "drop_remainder": True}),
        ("prefetch", {"buffer_size": -1}),
        ("reader", {"file_count": 2, "file_bytes": 38}),
        ("text reader", {"file_count": 1, "file_bytes": 4}),
    ],
)
def test_parameters(plan: Captured, mark: str, parameters: dict[str, object]) -> None:
    assert plan.operation(mark).parameters == parameters


def test_cardinality_and_bytes(plan: Captured) -> None:
    assert plan.operation("source").cardinality == 12
    assert plan.operation("generator").cardinality is None
    assert plan.operation("batch").cardinality == 3
    assert plan.operation("batch").element_bytes == 4 * 4
    assert plan.operation("text reader").element_bytes is None


def test_functions(plan: Captured) -> None:
    pure = plan.operation("parallel map").function
    python = plan.operation("python map").function
    random = plan.operation("random map").function
    assert pure is not None
    assert python is not None
    assert random is not None

    assert (pure.name, pure.file, pure.stateful) == ("scale", str(plan.script), False)
    assert pure.graph_ops["Mul"] == 1
    assert python.stateful
    assert [name.split()[-1] for name in python.python_function_names] == ["slow"]
    assert random.stateful
    assert any(name.endswith(".numpy_function") for name in python.python_calls)
    assert plan.operation("batch").function is None


def test_datasets_made_inside_functions(plan: Captured) -> None:
    outer = plan.operation("flat map").id

    assert plan.operation("inner reader").inside_function_of == outer
    assert plan.operation("inner skip").inside_function_of == outer
    assert plan.operation("inner skip").parent_ids == [plan.operation("inner reader").id]


def test_reader_given_as_the_function(plan: Captured) -> None:
    operations = plan.recording.operations
    (interleave,) = [o for o in operations if o.kind == "interleave"]
    inner = [o for o in operations if o.inside_function_of == interleave.id]

    assert [o.kind for o in inner] == ["TFRecordDataset"]
    assert inner[0].line == plan.line("interleave")


def test_kerass_own_operations_are_flagged(plan: Captured) -> None:
    at_fit = [o for o in plan.recording.operations if o.line == plan.line("fit")]

    assert at_fit
    assert all(operation.made_by_framework for operation in at_fit)


def test_a_call_that_failed_is_no_operation(plan: Captured) -> None:
    ids = [operation.id for operation in plan.recording.operations]

    assert len(ids) == len(set(ids))
    assert not {plan.line("refused"), plan.line("lost")} & {
        operation.line for operation in plan.recording.operations
    }


def test_options_of_a_loops_dataset(plan: Captured) -> None:
    loop = plan.loop("optioned loop")

    assert loop.dataset_options["autotune.enabled"] is False
    assert not loop.autotune_enabled
    assert loop.batch_size == 3


def test_abandoned_pipelines_leave_no_trace_of_training(plan: Captured) -> None:
    assert [loop.line for loop in plan.recording.loops if loop.role == "training"] == [
        plan.line("fit")
    ]
