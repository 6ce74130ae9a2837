"""The recorded plan of a script that makes many datasets."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pipediag.session.recording import RecordedOperation
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
    hot = source.map(lambda x: (tf.cast(tf.one_hot([x, x], 7), tf.int32), x))  # one-hot map
    bag = source.map(lambda x: tf.reduce_max(tf.one_hot([x, x], 7), axis=0))  # bag map
    ids = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    features = {"ids": ids, "label": tf.io.FixedLenFeature([2], tf.int64, [0, 0])}
    varying = source.map(lambda x: tf.io.parse_single_example("", features))  # varying map

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

    for kind in "ab":
        for folder in ("images", "texts"):
            os.makedirs(f"{folder}/{kind}")
        pixels = tf.zeros((8, 8, 3), tf.uint8)
        open(f"images/{kind}/0.png", "wb").write(tf.io.encode_png(pixels).numpy())
        open(f"texts/{kind}/0.txt", "w").write("some words")
    open("rows.csv", "w").write("x,y\\n" + "1.0,2\\n" * 8)
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
    with tf.io.TFRecordWriter("rows.tfrecord") as writer:
        writer.write(example.SerializeToString())

    images = keras.utils.image_dataset_from_directory(  # images
        "images", batch_size=2, image_size=(8, 8), verbose=False
    )
    texts = keras.utils.text_dataset_from_directory("texts", verbose=False)  # texts
    rows = tf.data.experimental.make_csv_dataset(  # rows
        "rows.csv", 4, label_name="y", num_epochs=1, num_parallel_reads=2
    )
    examples = tf.data.experimental.make_batched_features_dataset(  # examples
        "rows.tfrecord", 1, {"x": tf.io.FixedLenFeature([], tf.float32)}, num_epochs=1
    )
    mapped = tf.data.Dataset.range(8).apply(
        tf.data.experimental.map_and_batch(lambda x: x + 1, 4)  # mapped
    )
    parsed = rows.map(lambda x, y: (x["x"], y))  # parsed
    tf.data.Dataset.range(8).save("saved")
    loaded = tf.data.Dataset.load("saved")  # loaded
    few = loaded.take(2, "a_few")  # few
    for dataset in (images, texts, rows, examples, mapped, parsed, few):
        assert len(list(dataset)) > 0

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
    assert plan.stdout.startswith("refused ")
    assert plan.recording.notes == []
    training = [loop.line for loop in plan.recording.loops if loop.role == "training"]
    assert training == [plan.line("fit")], "abandoned pipelines leave no trace of training"
    loop = plan.loop("optioned loop")
    assert loop.dataset_options["autotune.enabled"] is False
    assert not loop.autotune_enabled
    assert loop.batch_size == 3


@pytest.mark.parametrize(
    ("mark", "kind", "parents", "parameters"),
    [
        ("source", "range", [], {}),
        ("parallel map", "map", ["source"], {"num_parallel_calls": 3}),
        ("named", "shuffle", ["parallel map"], {"buffer_size": 6}),
        ("batch", "batch", ["named"], {"batch_size": 4, "drop_remainder": True}),
        ("prefetch", "prefetch", ["batch"], {"buffer_size": -1}),
        ("zip", "zip", ["parallel map", "random map"], {}),
        ("list files", "list_files", [], {"shuffle": False}),
        ("reader", "TFRecordDataset", [], {"file_count": 2, "file_bytes": 38}),
        ("text reader", "TextLineDataset", [], {"file_count": 1, "file_bytes": 4}),
        ("flat map", "flat_map", ["paths"], {}),
        ("generator", "from_generator", [], {}),
    ],
)
def test_operations_have_lines_parents_and_parameters(
    plan: Captured, mark: str, kind: str, parents: list[str], parameters: dict[str, object]
) -> None:
    operation = plan.operation(mark)

    assert (operation.kind, operation.file) == (kind, str(plan.script))
    assert operation.parent_ids == [plan.operation(parent).id for parent in parents]
    assert operation.parameters == parameters
    assert not operation.made_by_framework
    assert operation.inside_function_of is None


def made_by(plan: Captured, helper: str, kind: str) -> RecordedOperation:
    operations = plan.recording.operations
    (operation,) = [op for op in operations if (op.helper, op.kind) == (helper, kind)]
    return operation


def test_names_cardinality_and_bytes(plan: Captured) -> None:
    assert plan.operation("named").name == "mine"
    assert plan.operation("batch").name == f"pipediag_{plan.operation('batch').id}"
    assert plan.operation("source").cardinality == 12
    assert plan.operation("generator").cardinality is None
    assert plan.operation("batch").cardinality == 3
    assert plan.operation("batch").element_bytes == 4 * 4
    assert plan.operation("text reader").element_bytes is None


def test_functions(plan: Captured) -> None:
    pure = plan.operation("parallel map").function
    python = plan.operation("python map").function
    random = plan.operation("random map").function

    assert (pure.name, pure.file, pure.stateful) == ("scale", str(plan.script), False)
    assert pure.graph_ops["Mul"] == 1
    assert python.stateful
    assert [name.split()[-1] for name in python.python_function_names] == ["slow"]
    assert random.stateful
    assert any(name.endswith(".numpy_function") for name in python.python_calls)
    assert plan.operation("batch").function is None
    assert pure.one_hot_widths == []
    assert plan.operation("one-hot map").function.one_hot_widths == [7]
    assert pure.padded_features == 0
    assert plan.operation("varying map").function.padded_features == 1
    assert plan.operation("bag map").function.one_hot_widths == []


def test_datasets_made_inside_functions(plan: Captured) -> None:
    outer = plan.operation("flat map").id

    assert plan.operation("inner reader").inside_function_of == outer
    assert plan.operation("inner skip").inside_function_of == outer
    assert plan.operation("inner skip").parent_ids == [plan.operation("inner reader").id]


def test_reader_given_as_the_function(plan: Captured) -> None:
    interleave = plan.operation("interleave", "interleave")
    inner = [o for o in plan.recording.operations if o.inside_function_of == interleave.id]

    assert [o.kind for o in inner] == ["TFRecordDataset"]
    assert inner[0].line == plan.line("interleave")


def test_kerass_own_operations_are_flagged(plan: Captured) -> None:
    at_fit = [o for o in plan.recording.operations if o.line == plan.line("fit")]

    assert at_fit
    assert {(op.helper, op.made_by_framework) for op in at_fit} == {(None, True)}


def test_a_call_that_failed_is_no_operation(plan: Captured) -> None:
    ids = [operation.id for operation in plan.recording.operations]

    assert len(ids) == len(set(ids))
    lines = {operation.line for operation in plan.recording.operations}
    assert not {plan.line("refused"), plan.line("lost")} & lines


FROM_A_DIRECTORY = "from_tensor_slices from_tensor_slices zip shuffle map batch prefetch"


@pytest.mark.parametrize(
    ("helper", "kinds"),
    [
        ("make_csv_dataset", "from_tensor_slices shuffle interleave shuffle batch map prefetch"),
        (
            "make_batched_features_dataset",
            "list_files interleave shuffle batch parse_example_dataset prefetch",
        ),
        ("image_dataset_from_directory", FROM_A_DIRECTORY),
        ("text_dataset_from_directory", FROM_A_DIRECTORY),
    ],
)
def test_calls_of_a_helper_stand_at_the_line_that_calls_it(
    plan: Captured, helper: str, kinds: str
) -> None:
    """A helper made these, each of the one before or of sources, all at the line of its call."""
    made = [op for op in plan.recording.operations if op.helper == helper]
    (line,) = {op.line for op in made}
    assert line is not None
    assert helper in plan.script.read_text(encoding="utf-8").splitlines()[line - 1]
    own = [op for op in made if op.inside_function_of is None]
    for above, below in pairwise(own):
        if below.kind not in ("zip", "from_tensor_slices", "from_tensors", "range"):
            assert above.id in below.parent_ids
    assert all(op.made_by_framework for op in made)
    assert [op.kind for op in own] == kinds.split()


def test_what_a_helper_makes_by_classes_has_the_parameters_of_the_public_call(
    plan: Captured,
) -> None:
    opened = made_by(plan, "make_csv_dataset", "interleave")
    assert opened.parameters["cycle_length"] == 2
    assert opened.parameters["num_parallel_calls"] == 2
    assert opened.parameters["deterministic"] is True


def test_readers_within_a_helper_are_within_what_opens_the_files(plan: Captured) -> None:
    by_id = {op.id: op for op in plan.recording.operations}
    kinds = ("CsvDataset", "TFRecordDataset")
    readers = [op for op in by_id.values() if op.helper and op.kind in kinds]
    assert [by_id[op.inside_function_of or ""].kind for op in readers] == ["interleave"] * 2


def test_own_calls_read_from_what_helpers_made(plan: Captured) -> None:
    # A name may stand in its place among the arguments.
    assert plan.operation("few").name == "a_few"
    parsed = plan.operation("parsed")
    assert parsed.parent_ids == [made_by(plan, "make_csv_dataset", "prefetch").id]
    assert (parsed.helper, parsed.made_by_framework) == (None, False)


def test_map_and_batch_and_load_are_operations(plan: Captured) -> None:
    (mapped,) = [op for op in plan.recording.operations if op.kind == "map_and_batch"]
    assert mapped.parameters["batch_size"] == 4
    assert mapped.function is not None
    assert mapped.line in (plan.line("mapped"), plan.line("mapped") - 1)
    assert plan.operation("loaded").kind == "load"
