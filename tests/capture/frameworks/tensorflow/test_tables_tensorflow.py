"""How traced steps of real models read and write their embedding tables, and by which ids."""

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
from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime
from pipediag.capture.frameworks.tensorflow.tables.traced_step import TracedTables
from pipediag.optimizers import LazyAdam

tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()])
rows, layers, optimizers = 50, keras.layers, keras.optimizers
x = np.random.default_rng(0).integers(0, rows, (8, 5))
y = np.zeros((8, 1), "float32")
batch = (tf.constant(x), tf.constant(y))

def parts_of(table):
    types = {op.name: op.type for _, op in table._step.operations}
    return {part: sorted({types[name] for name in names if name in types})
            for part, names in table.use.operations.items()}

def told(name, table, given):
    use = table.use
    (ids,) = table.looked_up(given)
    print(json.dumps({"name": name, "gradient": use.gradient, "spread": use.gradient_spread,
        "whole": use.writes_whole, "slots": use.slot_bytes,
        "temporaries": use.temporary_peak_bytes,
        "operations": use.whole_table_operations, "copied": use.copied_on_lookup,
        "copies": use.copies, "lookups": use.lookups, "through": table.passage.through,
        "dtype": table.passage.dtype, "parts": parts_of(table),
        "ids": ids.ids.tolist(), "before": None if ids.before is None else ids.before.tolist()}))

def stepped(model, optimizer, **options):
    # The function that Keras traces for a step, called as Keras calls it.
    model.compile(optimizer, "mse", **options)
    model.make_train_function()
    data = tf.data.Dataset.from_tensors(batch).repeat()
    model.train_function(iter(data))
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    functions = [one for one in seen if hasattr(one, "_list_all_concrete_functions")]
    step = TracedTables(functions)
    return step, step.of_batch(batch)

def simple(*first, **options):
    embedding = layers.Embedding(rows, 3, **options)
    return keras.Sequential([*first, embedding, layers.Flatten(), layers.Dense(1)])

integers = keras.Input((5,), dtype="int32")
for name, optimizer in [
    ("adam", "adam"), ("sgd", "sgd"), ("adagrad", "adagrad"), ("rmsprop", "rmsprop"),
    ("momentum", keras.optimizers.SGD(momentum=0.9)),
    ("decay", keras.optimizers.SGD(weight_decay=0.1)),
    ("clipnorm", keras.optimizers.SGD(clipnorm=1.0)),
    ("global_clipnorm", keras.optimizers.SGD(global_clipnorm=1.0)),
]:
    step, given = stepped(simple(integers), optimizer)
    told(name, step.tables[0], given)
step, given = stepped(simple(integers), LazyAdam())
told("row-wise", step.tables[0], given)
step, given = stepped(simple(integers), "sgd", jit_compile=True)
told("compiled", step.tables[0], given)
step, given = stepped(simple(integers, activity_regularizer="l2"), "sgd")
told("activity", step.tables[0], given)
step, given = stepped(simple(integers, embeddings_constraint="max_norm"), "sgd")
told("constrained", step.tables[0], given)
step, given = stepped(simple(integers, embeddings_regularizer="l2"), "sgd", jit_compile=True)
told("regularised", step.tables[0], given)

classes = keras.Sequential([integers, layers.Embedding(rows, 3), layers.Flatten(),
    layers.Dense(1000)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
classes.compile("adam", loss)
classes.make_train_function()
classes.train_function(iter(tf.data.Dataset.from_tensors((x, x[:, :1]))))
seen = [cell.cell_contents for cell in classes.train_function.__closure__]
step = TracedTables([one for one in seen if hasattr(one, "_list_all_concrete_functions")])
types = {op.name: op.type for _, op in step.tables[0]._step.operations}
print(json.dumps({"name": "vocabulary",
    "types": sorted({types[name] for name in step.vocabulary_operations if name in types}),
    "names": list(step.vocabulary_operations),
    "updates": [sorted({types[name] for name in one.update_operations if name in types})
        for one in step.softmaxes],
    "both": [name for one in step.softmaxes for name in one.update_operations
        if name in step.vocabulary_operations or name in sum(
            step.tables[0].use.operations.values(), [])]}))

class Tied(keras.Model):
    def __init__(self, of_one_length, **options):
        super().__init__()
        self.items = layers.Embedding(1000, 3, **options)
        self.of_one_length = of_one_length
    def call(self, ids):
        found, table = self.items(ids), self.items.embeddings
        if self.of_one_length:
            table = tf.math.l2_normalize(table, axis=-1)
        return tf.matmul(found, table, transpose_b=True)

for name, of_one_length, options in [("tied weights", False, {}), ("tied by direction", True, {}),
        ("tied regularised", False, {"embeddings_regularizer": "l2"})]:
    tied = Tied(of_one_length, **options)
    tied.compile("adam", loss)
    tied.make_train_function()
    tied.train_function(iter(tf.data.Dataset.from_tensors((x, x))))
    seen = [cell.cell_contents for cell in tied.train_function.__closure__]
    step = TracedTables([one for one in seen if hasattr(one, "_list_all_concrete_functions")])
    types = {op.name: op.type for _, op in step.tables[0]._step.operations}
    print(json.dumps({"name": name, "parts": parts_of(step.tables[0]),
        "updates": [one.update_operations for one in step.softmaxes],
        "vocabulary": sorted({types[one] for one in step.vocabulary_operations if one in types})}))

shared, other = layers.Embedding(rows, 3), layers.Embedding(rows, 3)
inner = keras.Sequential([keras.Input((5,), dtype="int32"), other])
joined = layers.Concatenate()([shared(integers), shared(integers // 2), inner(integers)])
step, given = stepped(keras.Model(integers, layers.Dense(1)(layers.Flatten()(joined))), "adam")
print(json.dumps({"name": "two", "slots": [table.use.slots for table in step.tables],
    "lookups": [table.use.lookups for table in step.tables],
    "operations": [sorted(sum(table.use.operations.values(), [])) for table in step.tables],
    "ids": [[one.ids.tolist() for one in table.looked_up(given)] for table in step.tables]}))

table = tf.Variable(tf.random.normal((rows, 3)), name="mine")
adam = keras.optimizers.Adam()

@tf.function
def train(ids, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.embedding_lookup(table, ids))
    adam.apply_gradients(zip(tape.gradient(loss, [table]), [table]))

train(*batch)
train(*batch)
step = TracedTables([train])
told("own loop", step.tables[0], step.of_call(train, batch[:1], {"wanted": batch[1]}))
arrays = [one.numpy() for one in batch]
told("own loop on arrays", step.tables[0], step.of_call(train, arrays, {}))
train(batch[0][:-1], batch[1][:-1])
step = TracedTables([train])
told("behind a short batch", step.tables[0], step.of_call(train, batch, {}))
print(json.dumps({"name": "another", "given": step.of_call(told, batch, {})}))
print(json.dumps({"name": "constants", "held": step.constant_bytes}))

@tf.function
def with_negatives(ids, wanted):
    with tf.GradientTape() as tape:
        drawn = tf.random.uniform((3,), 0, rows, "int64")
        loss = tf.reduce_mean(tf.nn.embedding_lookup(table, drawn))
        loss += tf.reduce_mean(tf.nn.embedding_lookup(table, ids))
    adam.apply_gradients(zip(tape.gradient(loss, [table]), [table]))

with_negatives(*batch)
step = TracedTables([with_negatives])
(found,) = step.tables
told("negatives", found, step.of_call(with_negatives, batch, {}))
print(json.dumps({"name": "without negatives", "why": found.ids_incomplete}))

array = np.zeros((1000, 4), "float32")

@tf.function
def reading_an_array(ids, wanted):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.embedding_lookup(table, ids)) + array[0, 0]
        loss += tf.reduce_mean(tf.gather(array, ids))
    adam.apply_gradients(zip(tape.gradient(loss, [table]), [table]))

reading_an_array(*batch)
print(json.dumps({"name": "constants of an array",
    "held": TracedTables([reading_an_array]).constant_bytes}))

# Ids that an own loop rounds, for each way in which it may look rows up.
masked = layers.Embedding(rows, 3, mask_zero=True)
masked.build()

class Subclass(layers.Embedding):
    def call(self, ids):
        return tf.nn.embedding_lookup(self.embeddings.value, ids)

subclass = Subclass(rows, 3)
subclass.build()
ways = {
    "gather": (table, lambda ids: tf.gather(table, ids)),
    "gather of a tensor": (table, lambda ids: tf.gather(tf.convert_to_tensor(table), ids)),
    "embedding_lookup": (table, lambda ids: tf.nn.embedding_lookup(table, ids)),
    "subclass": (subclass.embeddings.value, lambda ids: subclass(ids)),
    "layer with a mask": (masked.embeddings.value, lambda ids: masked(ids)),
    "own mask": (table, lambda ids: tf.nn.embedding_lookup(table, ids)
        * tf.cast(tf.not_equal(ids, 0), "float32")[..., None]),
}
rounded = (tf.constant([[0, 2048, 2049, 49, 7]]),)
for way, (variable, look_up) in ways.items():
    @tf.function
    def stepping(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(look_up(tf.cast(tf.cast(ids, "float16"), "int64")))
        (gradient,) = tape.gradient(loss, [variable])
        variable.scatter_sub(gradient)

    concrete = stepping.get_concrete_function(*rounded)
    step = TracedTables([stepping])
    (found,) = step.tables
    (ids,) = found.looked_up(step.of_call(stepping, rounded, {}))
    print(json.dumps({"name": way, "through": found.passage.through, "ids": ids.ids.tolist(),
        "before": ids.before.tolist(), "rows": found.record.rows, "mask": found.record.mask_zero}))

def of_classes(*last, labels="sparse_categorical_crossentropy", **options):
    body = [keras.Input((5,), dtype="int32"), layers.Embedding(rows, 3)]
    model = keras.Sequential([*body, *last])
    model.compile("adam", labels, **options)
    model.make_train_function()
    sparse = isinstance(labels, str) and labels.startswith("sparse")
    shape = model.output_shape[:-1] if sparse else model.output_shape
    wanted = np.zeros([8, *shape[1:]], "float32")
    model.train_function(iter(tf.data.Dataset.from_tensors((batch[0], wanted)).repeat()))
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    return TracedTables([one for one in seen if hasattr(one, "_list_all_concrete_functions")])

def softmax(name, step):
    found = [[one.classes, one.features, one.positions, one.labels, one.compiled]
        for one in step.softmaxes]
    print(json.dumps({"name": name, "softmaxes": found}))

def dense(activation=None, words=70):
    return layers.Dense(words, activation=activation)

softmax("activation", of_classes(layers.Flatten(), dense("softmax")))
softmax("own activation", of_classes(layers.Flatten(), dense(), layers.Softmax()))
softmax("one-hot", of_classes(
    layers.Flatten(), dense("softmax"), labels="categorical_crossentropy"))
softmax("each word", of_classes(dense("softmax")))
softmax("xla", of_classes(layers.Flatten(), dense("softmax"), jit_compile=True))

tied, biases = tf.Variable(tf.random.normal((70, 3))), tf.Variable(tf.zeros(70))

@tf.function
def tied_step(ids, wanted):
    with tf.GradientTape() as tape:
        vectors = tf.reduce_mean(tf.nn.embedding_lookup(tied, ids), axis=1)
        logits = tf.matmul(vectors, tied, transpose_b=True) / 0.5
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(wanted, logits)
    adam.apply_gradients(zip(tape.gradient(loss, [tied]), [tied]))

@tf.function
def sampled_step(ids, wanted):
    with tf.GradientTape() as tape:
        vectors = tf.reduce_mean(tf.nn.embedding_lookup(tied, ids), axis=1)
        loss = tf.nn.sampled_softmax_loss(tied, biases, wanted[:, None], vectors, 7, 70)
    adam.apply_gradients(zip(tape.gradient(loss, [tied]), [tied]))

adam = keras.optimizers.Adam()
for name, function in [("tied", tied_step), ("sampled", sampled_step)]:
    function(tf.constant(x), tf.zeros(8, tf.int64))
    softmax(name, TracedTables([function]))

for name, given, options, *added_up in [
    ("mirrored", optimizers.Adam(), {}),
    ("mirrored on one", optimizers.SGD(global_clipnorm=1.0), {},
        tf.distribute.ReductionToOneDevice()),
    ("mirrored sgd on one", optimizers.SGD(), {}, tf.distribute.ReductionToOneDevice()),
    ("mirrored sgd", optimizers.SGD(), {}),
    ("mirrored norm of all", optimizers.SGD(global_clipnorm=1.0), {}),
    ("mirrored clipped", optimizers.SGD(clipnorm=1.0), {}),
    ("mirrored regularised", optimizers.SGD(), {"embeddings_regularizer": "l2"}),
]:
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"], *added_up)
    config = keras.optimizers.serialize(given)
    with strategy.scope():
        model = simple(integers, **options)
        model.compile(keras.optimizers.deserialize(config), "mse")
    model.make_train_function()
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(batch).repeat())
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    functions = [one for one in seen if hasattr(one, "_list_all_concrete_functions")]
    # Keras' Adam can't run on two logical CPUs: a fault of TensorFlow's, after the tracing.
    traced = [function.get_concrete_function(iter(data)) for function in functions]
    step = TracedTables(functions)
    (table,) = step.tables
    print(json.dumps({"name": name, "slots": table.use.slots, "gradient": table.use.gradient}))

# What a call draws: that of Keras, of strategies, and of functions that do it their own way.
def drawn(name, function, batches_per_call=1):
    step = TracedTables([function])
    print(json.dumps({"name": name, "as counted": step.draws_as_counted(batches_per_call)}))
    return step

def looked_up_by(draw):
    table = tf.Variable(tf.zeros((rows, 3)))

    @tf.function
    def stepping(*iterators):
        def train(ids):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
            table.scatter_sub(tape.gradient(loss, table))
        draw(train, *iterators)

    return stepping

# AutoGraph finds no source of what is given as text.
def counted(train, batch):
    train(batch)
    return 1

def in_a_loop(train, iterator):
    tf.while_loop(lambda at: at < 3, lambda at: at + counted(train, next(iterator)), [0])

def once_or_none(train, iterator):
    maybe = iterator.get_next_as_optional()
    return tf.cond(maybe.has_value(), lambda: counted(train, maybe.get_value()), lambda: 1)

def as_long_as_there_are(train, iterator):
    tf.while_loop(lambda at: at < 3, lambda at: at + once_or_none(train, iterator), [0])

def once_more_if(train, iterator):
    maybe = iterator.get_next_as_optional()
    both = lambda: counted(train, maybe.get_value()) + counted(train, next(iterator))
    tf.cond(maybe.has_value(), both, lambda: 1)

some = tf.data.Dataset.from_tensor_slices(x).batch(2)
for name, draw, count in [
    ("draws once", lambda train, one: train(next(one)), 1),
    ("draws twice", lambda train, one: (train(next(one)), train(next(one))), 1),
    ("draws from two", lambda train, one, two: train(next(one) + next(two)), 2),
    ("draws in a loop", in_a_loop, 1),
    ("draws as long as there are", as_long_as_there_are, 1),
    ("draws once or none", once_or_none, 1),
    ("draws once more", once_more_if, 1),
    ("draws nothing", lambda train, batch: train(batch), 0),
]:
    function = looked_up_by(draw)
    given = [iter(some) for _ in range(count)] or [x[:2]]
    function.get_concrete_function(*given)
    drawn(name, function)

# A ragged batch comes out of an iterator as one tensor, a sparse one as three in one.
ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]], tf.int64)).batch(2)
labelled = ragged.repeat().map(lambda ids: (ids, tf.ones(2)))
for name, dataset, ids_of in [
    ("ragged", labelled, lambda ids, _: ids.values),
    ("padded in the step", labelled, lambda ids, _: ids.to_tensor()),
    ("sparse", labelled.map(lambda ids, y: (ids.to_sparse(), y)), lambda ids, _: ids.values),
]:
    function = looked_up_by(lambda train, one: train(ids_of(*next(one))))
    iterator = iter(dataset)
    function(iterator)
    runtime = TensorFlowRuntime()
    lack = runtime.not_handed_once(iterator, dataset.element_spec, 1)
    one = next(iterator)
    function(runtime.handed_once([one], dataset.element_spec))
    step = TracedTables([function])
    (table,) = step.tables
    (ids,) = table.looked_up(step.of_batch(one))
    print(json.dumps({"name": name, "lack": lack, "ids": ids.ids.tolist(),
        "dtype": table.passage.dtype, "traced": function.experimental_get_tracing_count()}))

for unrolled in (1, 2):
    model = simple(integers)
    model.compile("sgd", "mse", steps_per_execution=4)
    model.unrolled_steps_per_execution = unrolled
    model.make_train_function()
    model.train_function(iter(tf.data.Dataset.from_tensors(batch).repeat()))
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    (function,) = [one for one in seen if hasattr(one, "_list_all_concrete_functions")]
    step = drawn(f"several steps, {unrolled} at a time", function, batches_per_call=4)
    (table,) = step.tables
    print(json.dumps({"name": f"ids of several steps, {unrolled} at a time",
        "ids": [one.ids.tolist() for one in table.looked_up(step.of_batch(batch))]}))
drawn("several steps counted as one", function)

keras.mixed_precision.set_global_policy("mixed_bfloat16")
softmax("sixteen bits", of_classes(layers.Flatten(), dense(), layers.Softmax(dtype="float32")))
rows, x = 2000, np.arange(1000, 1040).reshape(8, 5)
batch = (tf.constant(x), tf.constant(y))
step, given = stepped(simple(), "adam")
told("bfloat16", step.tables[0], given)

class Own(layers.Layer):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def build(self, shape):
        self.w = self.add_weight(shape=(rows, 3), **self.options)

    def call(self, ids):
        return tf.cast(tf.nn.embedding_lookup(self.w.value, ids), self.compute_dtype)

for name, options in [("cast", {}), ("not cast", {"autocast": False})]:
    own = keras.Sequential([integers, Own(**options), layers.Flatten(), layers.Dense(1)])
    step, given = stepped(own, "sgd")
    told(name, step.tables[0], given)
"""


@pytest.fixture(scope="module")
def steps() -> dict[str, dict[str, Any]]:
    return told_by(STEPS)


@pytest.mark.parametrize(
    ("name", "spread", "writes_whole", "slots", "passes_over_all"),
    [
        ("adam", True, True, 2, True),
        ("sgd", False, False, 0, False),
        ("clipnorm", False, False, 0, False),
        ("adagrad", False, False, 1, True),
        ("rmsprop", True, True, 1, True),
        ("momentum", True, True, 1, True),
        ("decay", False, True, 0, True),
        ("global_clipnorm", True, True, 0, True),
        ("row-wise", False, False, 2, False),
    ],
)
def test_what_each_optimizer_does_to_a_table(
    steps: dict[str, dict[str, Any]],
    name: str,
    spread: bool,
    writes_whole: bool,
    slots: int,
    passes_over_all: bool,
) -> None:
    step = steps[name]

    assert (step["gradient"], step["spread"]) == ("sparse", spread)
    assert (step["whole"], bool(step["operations"])) == (writes_whole, passes_over_all)
    assert step["slots"] == slots * 50 * 3 * 4


@pytest.mark.parametrize(
    ("name", "tables"),
    [("adam", 2), ("sgd", 0), ("adagrad", 1.5), ("rmsprop", 2), ("momentum", 2)],
)
def test_what_is_made_of_a_table_and_alive_at_one_time(
    steps: dict[str, dict[str, Any]], name: str, tables: float
) -> None:
    """Adam makes ten such tensors; Adagrad two masks, of a byte each, beside its square root."""
    assert steps[name]["temporaries"] == tables * 50 * 3 * 4


def test_ids_are_those_of_the_batch(steps: dict[str, dict[str, Any]]) -> None:
    adam, own = steps["adam"], steps["own loop"]

    assert adam["ids"] == own["ids"]
    # Arrays are what a step makes of them; a short last batch is traced beside the others.
    assert steps["own loop on arrays"]["ids"] == own["ids"]
    assert steps["behind a short batch"]["ids"] == own["ids"]
    assert (adam["dtype"], adam["through"]) == ("int64", None)
    assert (adam["copied"], own["copied"]) == (True, False)


def test_ids_that_a_step_draws_by_itself_leave_those_of_the_batch(
    steps: dict[str, dict[str, Any]],
) -> None:
    found = steps["negatives"]
    why = steps["without negatives"]["why"]

    assert found["lookups"] == 2
    assert found["ids"] == steps["own loop"]["ids"]
    assert why.startswith("1 of 2 lookups could not be followed, as their ids can't be computed")
    assert "which has a state" in why


@pytest.mark.parametrize(
    ("name", "ids"),
    [("ragged", [1, 2, 3]), ("padded in the step", [[1, 2], [3, 0]]), ("sparse", [1, 2, 3])],
)
def test_ids_of_ragged_and_sparse_batches_are_those_of_what_the_step_draws(
    steps: dict[str, dict[str, Any]], name: str, ids: list[Any]
) -> None:
    found = steps[name]
    assert (found["lack"], found["ids"], found["dtype"]) == (None, ids, "int64")
    assert found["traced"] == 1, "handed on, the batch is the one that the step was traced for"


def test_tables_of_one_shape_are_told_apart(steps: dict[str, dict[str, Any]]) -> None:
    two = steps["two"]
    ids = steps["adam"]["ids"]

    assert two["slots"] == [2, 2]
    assert sorted(two["lookups"]) == [1, 2]
    ((alone,),) = (one for one in two["ids"] if len(one) == 1)
    assert alone == ids
    (both,) = (one for one in two["ids"] if len(one) == 2)
    halves = [[id // 2 for id in row] for row in ids]
    assert sorted(both) == sorted([ids, halves])


def test_an_array_that_the_step_reads_is_a_constant_of_its_graph(
    steps: dict[str, dict[str, Any]],
) -> None:
    without, held = steps["constants"]["held"], steps["constants of an array"]["held"]
    assert 16_000 <= held - without < 17_000


def test_a_call_of_another_function_is_no_step(steps: dict[str, dict[str, Any]]) -> None:
    assert steps["another"]["given"] is None


def test_ids_that_pass_a_float_are_seen_before_and_after(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["bfloat16"]

    assert step["through"] == "bfloat16"
    assert step["before"][0] == [1000, 1001, 1002, 1003, 1004]
    assert step["ids"][0] == [1000, 1000, 1000, 1004, 1004]


@pytest.mark.parametrize(
    "way", ["gather", "gather of a tensor", "embedding_lookup", "subclass", "layer with a mask"]
)
def test_ids_are_seen_on_each_way_to_look_rows_up(
    steps: dict[str, dict[str, Any]], way: str
) -> None:
    step = steps[way]

    assert (step["rows"], step["through"]) == (50, "float16")
    assert step["before"] == [[0, 2048, 2049, 49, 7]]
    assert step["ids"] == [[0, 2048, 2048, 49, 7]]


def test_a_mask_of_id_0_is_seen_whoever_makes_it(steps: dict[str, dict[str, Any]]) -> None:
    masked = {"layer with a mask", "own mask"}
    ways = {"gather", "gather of a tensor", "embedding_lookup", "subclass", *masked}
    assert {way for way in ways if steps[way]["mask"]} == masked


@pytest.mark.parametrize(
    ("name", "copies"),
    [
        ("sgd", 1),  # rows are scattered into it, so each read of it is a copy
        ("adam", 0),  # written in full
        ("own loop", 0),  # read by its handle
        ("compiled", 0),
        ("row-wise", 1),
        ("cast", 1),
        ("not cast", 0),
    ],
)
def test_where_a_lookup_copies_the_table(
    steps: dict[str, dict[str, Any]], name: str, copies: int
) -> None:
    assert steps[name]["copies"] == copies


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("row-wise", set()),  # gradients of one row are summed: a row for each different id
        ("activity", set()),
        ("cast", {"Cast"}),
        ("not cast", set()),
        ("constrained", {"Mul", "Square"}),
    ],
)
def test_what_makes_tensors_as_large_as_the_table(
    steps: dict[str, dict[str, Any]], name: str, operations: set[str]
) -> None:
    assert set(steps[name]["operations"]) == operations
    assert steps[name]["gradient"] == "sparse"


READS = ["ReadVariableOp"]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("sgd", {"lookup": ["GatherV2"], "copy": READS}),
        ("own loop", {"lookup": ["ResourceGather"], "copy": READS}),
        ("compiled", {"lookup": ["GatherV2"], "copy": READS}),
        ("cast", {"lookup": ["GatherV2"], "copy": ["Cast", *READS]}),
        ("not cast", {"lookup": ["ResourceGather"]}),
    ],
)
def test_how_rows_are_looked_up(
    steps: dict[str, dict[str, Any]], name: str, parts: dict[str, list[str]]
) -> None:
    found = steps[name]["parts"]
    assert {part: found.get(part) for part in parts} == parts


@pytest.mark.parametrize("name", ["adam", "sgd", "row-wise", "decay", "clipnorm", "own loop"])
def test_every_write_is_the_updates_and_no_part_is_the_regularisers(
    steps: dict[str, dict[str, Any]], name: str
) -> None:
    parts = steps[name]["parts"]
    writes = {"Assign", "Resource"}

    assert any(one.startswith(tuple(writes)) for one in parts["update"])
    assert not any(
        one.startswith("Assign") for part in parts for one in parts[part] if part != "update"
    )
    assert "regularizer" not in parts


def test_gradients_are_told_from_what_optimizers_compute(steps: dict[str, dict[str, Any]]) -> None:
    adam, sgd, lazy = (steps[name]["parts"] for name in ("adam", "sgd", "row-wise"))

    assert "UnsortedSegmentSum" in adam["gradient"]
    assert "UnsortedSegmentSum" not in sgd["gradient"]
    assert {"Unique", "UnsortedSegmentSum"} <= set(lazy["gradient"])
    assert {"Mul", "Sqrt", "Square", "Sub", "AssignSubVariableOp"} <= set(adam["update"])
    assert {"ResourceGather", "ResourceScatterUpdate"} <= set(lazy["update"])


def test_regularisers_and_constraints_are_a_part_of_their_own(
    steps: dict[str, dict[str, Any]],
) -> None:
    regularised, constrained = (steps[name]["parts"] for name in ("regularised", "constrained"))

    assert steps["regularised"]["gradient"] == "dense"
    assert {"Square", "Sum"} <= set(regularised["regularizer"])
    assert "AssignVariableOp" in constrained["regularizer"]
    assert "ResourceScatterSub" in constrained["update"]


def test_the_update_of_the_weights_of_a_softmax_is_told(steps: dict[str, dict[str, Any]]) -> None:
    found = steps["vocabulary"]

    (update,) = found["updates"]
    assert {"AssignSubVariableOp", "Mul", "Sqrt", "Square"} <= set(update)
    assert found["both"] == []
    # That of a table is told with the table.
    assert steps["tied weights"]["updates"] == [[]]


def test_the_gradient_of_tied_output_weights_is_the_vocabularys(
    steps: dict[str, dict[str, Any]],
) -> None:
    tied = steps["tied weights"]

    assert "regularizer" not in tied["parts"]
    # Of each example's gradient of the weights.
    assert {"BatchMatMulV2", "Sum"} <= set(tied["vocabulary"])
    assert "Sum" not in tied["parts"]["gradient"]
    # Nor is it a regulariser where the weights are computed from all of the table.
    assert "regularizer" not in steps["tied by direction"]["parts"]


def test_a_regulariser_on_tied_weights_is_told_from_their_gradient(
    steps: dict[str, dict[str, Any]],
) -> None:
    tied, plain = steps["tied regularised"], steps["tied weights"]

    assert {"Square", "Mul"} <= set(tied["parts"]["regularizer"])
    assert tied["vocabulary"] == plain["vocabulary"]


def test_an_operation_belongs_to_one_table(steps: dict[str, dict[str, Any]]) -> None:
    first, second = steps["two"]["operations"]

    assert first
    assert second
    assert set(first).isdisjoint(second)


def test_logits_and_their_loss_are_the_vocabularys(steps: dict[str, dict[str, Any]]) -> None:
    found = steps["vocabulary"]

    assert {"MatMul", "SparseSoftmaxCrossEntropyWithLogits"} <= set(found["types"])
    assert not any("adam" in name for name in found["names"])


@pytest.mark.parametrize(
    ("name", "softmaxes"),
    [
        ("activation", [[70, 15, 1, "sparse", False]]),
        ("own activation", [[70, 15, 1, "sparse", False]]),
        ("one-hot", [[70, 15, 1, "dense", False]]),
        ("each word", [[70, 3, 5, "sparse", False]]),
        ("xla", [[70, 15, 1, "sparse", True]]),
        ("tied", [[70, 3, 1, "sparse", False]]),
        ("sixteen bits", [[70, 15, 1, "sparse", False]]),
        ("sampled", []),
    ],
)
def test_losses_that_take_a_softmax_over_all_rows_of_a_weight(
    steps: dict[str, dict[str, Any]], name: str, softmaxes: list[Any]
) -> None:
    assert steps[name]["softmaxes"] == softmaxes


@pytest.mark.parametrize(
    ("name", "gradient", "slots"),
    [
        ("mirrored", "sparse", 2),
        ("mirrored sgd", "sparse", 0),
        ("mirrored clipped", "sparse", 0),
        ("mirrored norm of all", "sparse", 0),
        ("mirrored on one", "sparse", 0),
        ("mirrored sgd on one", "sparse", 0),
        ("mirrored regularised", "dense", 0),
    ],
)
def test_replicas_have_a_gradient_as_one_device_has(
    steps: dict[str, dict[str, Any]], name: str, gradient: str, slots: int
) -> None:
    assert (steps[name]["gradient"], steps[name]["slots"]) == (gradient, slots)


@pytest.mark.parametrize(
    ("name", "as_counted"),
    [
        ("draws once", True),
        ("draws once or none", True),
        ("draws nothing", True),
        ("draws twice", False),
        ("draws from two", False),
        ("draws in a loop", False),
        ("draws as long as there are", False),
        ("draws once more", False),
        ("several steps, 1 at a time", True),
        ("several steps, 2 at a time", True),
        ("several steps counted as one", False),
    ],
)
def test_whether_a_call_draws_what_is_counted(
    steps: dict[str, dict[str, Any]], name: str, as_counted: bool
) -> None:
    assert steps[name]["as counted"] is as_counted


@pytest.mark.parametrize("unrolled", [1, 2])
def test_ids_of_one_of_several_steps_are_those_of_its_batch(
    steps: dict[str, dict[str, Any]], unrolled: int
) -> None:
    found = steps[f"ids of several steps, {unrolled} at a time"]

    assert found["ids"] == [steps["adam"]["ids"]]
