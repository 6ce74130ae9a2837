"""How traced steps of real models read and write their embedding tables, and by which ids."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capture.captured import told_by

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

def say(name, **facts):
    print(json.dumps({"name": name, **facts}))

def types_of(table, names):
    types = {op.name: op.type for _, op in table._step.operations}
    return sorted({types[name] for name in names if name in types})

def work_of(table):
    return {"pass": types_of(table, table.use.pass_operations),
        "copy": types_of(table, table.use.copy_operations)}

def told(name, table, given):
    use = table.use
    (ids,) = table.looked_up(given)
    say(name, gradient=use.gradient, whole=use.writes_whole,
        slots=use.slot_bytes, temporaries=use.temporary_bytes,
        operations=sorted(use.whole_table_operations),
        copies=use.copies, lookups=use.lookups, through=table.cast_through,
        work=work_of(table), ids=ids.tolist(),
        rows=table.record.rows, mask=table.record.mask_zero)

def functions_of(model):
    # The function that Keras traces for a step.
    seen = [cell.cell_contents for cell in model.train_function.__closure__]
    return [one for one in seen if hasattr(one, "_list_all_concrete_functions")]

def read(model, *compiled, data=None, **options):
    model.compile(*compiled, **options)
    model.make_train_function()
    model.train_function(iter(tf.data.Dataset.from_tensors(data or batch).repeat()))
    return TracedTables(functions_of(model))

def stepped(name, model, optimizer, **options):
    step = read(model, optimizer, "mse", **options)
    told(name, step.tables[0], step.of_batch(batch))

def simple(*first, **options):
    embedding = layers.Embedding(rows, 3, **options)
    return keras.Sequential([*first, embedding, layers.Flatten(), layers.Dense(1)])

integers = keras.Input((5,), dtype="int32")
for name, optimizer in [
    ("adam", "adam"), ("sgd", "sgd"), ("adagrad", "adagrad"), ("rmsprop", "rmsprop"),
    ("momentum", optimizers.SGD(momentum=0.9)), ("decay", optimizers.SGD(weight_decay=0.1)),
    ("clipnorm", optimizers.SGD(clipnorm=1.0)), ("row-wise", LazyAdam()),
    ("global_clipnorm", optimizers.SGD(global_clipnorm=1.0)),
]:
    stepped(name, simple(integers), optimizer)
stepped("compiled", simple(integers), "sgd", jit_compile=True)
stepped("activity", simple(integers, activity_regularizer="l2"), "sgd")
stepped("constrained", simple(integers, embeddings_constraint="max_norm"), "sgd")
stepped("regularised", simple(integers, embeddings_regularizer="l2"), "sgd", jit_compile=True)

class Tied(keras.Model):
    def __init__(self):
        super().__init__()
        self.items = layers.Embedding(1000, 3)
    def call(self, ids):
        return tf.matmul(self.items(ids), self.items.embeddings, transpose_b=True)

loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
classes = keras.Sequential([integers, layers.Embedding(rows, 3), layers.Flatten(),
    layers.Dense(1000)])
for name, model, labels in [
    ("vocabulary", classes, x[:, :1]), ("tied weights", Tied(), x),
]:
    step = read(model, "adam", loss, data=(x, labels))
    table = step.tables[0]
    say(name, work=work_of(table), types=types_of(table, step.vocabulary_operations),
        both=[*{*step.vocabulary_operations} & {*table.use.pass_operations}])

class Ranked(Tied):
    hits = keras.metrics.Mean()
    def train_step(self, data):
        ids, wanted = data
        with tf.GradientTape() as tape:
            found = self.items(ids)
            loss = tf.reduce_mean(tf.square(found))
        weights = self.trainable_variables
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        scores = tf.einsum("bld,vd->blv", found, self.items.embeddings)[:, 0]
        self.hits.update_state(tf.cast(tf.math.in_top_k(wanted[:, 0], scores, 9), "float32"))
        parts = tf.data.Dataset.range(2).reduce(0.0, lambda best, _: best + found[0, 0, 0])
        self.hits.update_state(parts)
        return {"loss": loss, "hits": self.hits.result()}

def of_metrics(name, model, data):
    step = read(model, "adam", loss, data=data)
    kinds = {one.rpartition("/")[2] for one in step.metric_operations}
    updates = {*step.tables[0].use.pass_operations} & {*step.metric_operations}
    say(name, kinds=sorted(kinds), updates=sorted(updates))

of_metrics("metrics over all", Ranked(), (x, x))
of_metrics("no metrics", classes, (x, x[:, :1]))
averaged = keras.Sequential([integers, layers.Embedding(90_000, 3), layers.Flatten(),
    layers.Dense(5000, use_bias=False)])
found = {}
for averages in (False, True):
    optimizer = optimizers.AdamW(use_ema=averages)
    step = read(averaged, optimizer, loss, data=(x, x[:, :1]))
    kinds = [one.rpartition("/")[2].lower() for one in step.metric_operations]
    found[str(averages)] = sum(one.startswith(("mul", "sub")) for one in kinds)
say("averages", **found)

shared, other = layers.Embedding(rows, 3), layers.Embedding(rows, 3)
inner = keras.Sequential([keras.Input((5,), dtype="int32"), other])
joined = layers.Concatenate()([shared(integers), shared(integers // 2), inner(integers)])
step = read(keras.Model(integers, layers.Dense(1)(layers.Flatten()(joined))), "adam", "mse")
given = step.of_batch(batch)
say("two", slots=[table.use.slot_bytes for table in step.tables],
    lookups=[table.use.lookups for table in step.tables],
    operations=[table.use.pass_operations for table in step.tables],
    ids=[[one.tolist() for one in table.looked_up(given)] for table in step.tables])

table = tf.Variable(tf.random.normal((rows, 3)), name="mine")
adam = optimizers.Adam()
array = np.zeros((1000, 4), "float32")

def own_loop(more=lambda ids: 0.0):
    @tf.function
    def train(ids, wanted):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.embedding_lookup(table, ids)) + more(ids)
        adam.apply_gradients(zip(tape.gradient(loss, [table]), [table]))
    train(*batch)
    return train, TracedTables([train])

train, plain = own_loop()
told("own loop", plain.tables[0], plain.of_call(train, batch[:1], {"wanted": batch[1]}))
arrays = [one.numpy() for one in batch]
told("own loop on arrays", plain.tables[0], plain.of_call(train, arrays, {}))
train(batch[0][:-1], batch[1][:-1])
step = TracedTables([train])
told("behind a short batch", step.tables[0], step.of_call(train, batch, {}))
say("another", given=step.of_call(told, batch, {}))
drawn = lambda ids: tf.reduce_mean(
    tf.nn.embedding_lookup(table, tf.random.uniform((3,), 0, rows, "int64")))
train, step = own_loop(drawn)
told("negatives", step.tables[0], step.of_call(train, batch, {}))
say("without negatives", why=step.tables[0].ids_incomplete)
_, step = own_loop(lambda ids: array[0, 0] + tf.reduce_mean(tf.gather(array, ids)))
say("constants of an array", held=step.constant_bytes - plain.constant_bytes)

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

    stepping.get_concrete_function(*rounded)
    step = TracedTables([stepping])
    told(way, step.tables[0], step.of_call(stepping, rounded, {}))

def softmax(name, step):
    say(name, softmaxes=[[one.classes, one.features, one.labels] for one in step.softmaxes])

def of_classes(name, *last, labels="sparse_categorical_crossentropy", **options):
    model = keras.Sequential([integers, layers.Embedding(rows, 3), *last])
    shape = model.output_shape[:-1] if labels.startswith("sparse") else model.output_shape
    wanted = np.zeros([8, *shape[1:]], "float32")
    softmax(name, read(model, "adam", labels, data=(batch[0], wanted), **options))

def dense(activation=None):
    return layers.Dense(70, activation=activation)

flat = layers.Flatten()
of_classes("activation", flat, dense("softmax"))
of_classes("own activation", flat, dense(), layers.Softmax())
of_classes("one-hot", flat, dense("softmax"), labels="categorical_crossentropy")
of_classes("each word", dense("softmax"))

tied, biases = tf.Variable(tf.random.normal((70, 3))), tf.Variable(tf.zeros(70))
for name, loss_of in [
    ("tied", lambda vectors, wanted: tf.nn.sparse_softmax_cross_entropy_with_logits(
        wanted, tf.matmul(vectors, tied, transpose_b=True) / 0.5)),
    ("sampled", lambda vectors, wanted: tf.nn.sampled_softmax_loss(
        tied, biases, wanted[:, None], vectors, 7, 70)),
]:
    @tf.function
    def stepping(ids, wanted):
        with tf.GradientTape() as tape:
            vectors = tf.reduce_mean(tf.nn.embedding_lookup(tied, ids), axis=1)
            loss = loss_of(vectors, wanted)
        optimizer.apply_gradients(zip(tape.gradient(loss, [tied]), [tied]))

    optimizer = optimizers.Adam()
    stepping(tf.constant(x), tf.zeros(8, tf.int64))
    softmax(name, TracedTables([stepping]))

for name, given, options in [("mirrored", optimizers.Adam(), {}),
        ("mirrored sgd", optimizers.SGD(clipnorm=1.0), {}),
        ("mirrored norm of all", optimizers.SGD(global_clipnorm=1.0), {}),
        ("mirrored regularised", optimizers.SGD(), {"embeddings_regularizer": "l2"})]:
    strategy = tf.distribute.MirroredStrategy(["/CPU:0", "/CPU:1"])
    config = optimizers.serialize(given)
    with strategy.scope():
        model = simple(integers, **options)
        model.compile(optimizers.deserialize(config), "mse")
    model.make_train_function()
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensors(batch).repeat())
    functions = functions_of(model)
    # Keras' Adam can't run on two logical CPUs: a fault of TensorFlow's, after the tracing.
    traced = [function.get_concrete_function(iter(data)) for function in functions]
    (found,) = TracedTables(functions).tables
    say(name, slots=found.use.slot_bytes, gradient=found.use.gradient)

# What a call draws: that of Keras, and of functions that do it their own way.
def counted_by(name, function):
    say(name, counted=TracedTables([function]).draws_one_batch())

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

some = tf.data.Dataset.from_tensor_slices(x).batch(2)
for name, draw, count in [
    ("draws once", lambda train, one: train(next(one)), 1),
    ("draws twice", lambda train, one: (train(next(one)), train(next(one))), 1),
    ("draws from two", lambda train, one, two: train(next(one) + next(two)), 2),
    ("draws in a loop", in_a_loop, 1),
    ("draws once or none", once_or_none, 1),
    ("draws nothing", lambda train, batch: train(batch), 0),
]:
    function = looked_up_by(draw)
    function.get_concrete_function(*([iter(some) for _ in range(count)] or [x[:2]]))
    counted_by(name, function)

# A ragged batch comes out of an iterator as one tensor, a sparse one as three in one.
ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [3]], tf.int64)).batch(2)
labelled = ragged.repeat().map(lambda ids: (ids, tf.ones(2)))
runtime = TensorFlowRuntime()
for name, dataset, ids_of in [
    ("ragged", labelled, lambda ids, _: ids.values),
    ("padded in the step", labelled, lambda ids, _: ids.to_tensor()),
    ("sparse", labelled.map(lambda ids, y: (ids.to_sparse(), y)), lambda ids, _: ids.values),
]:
    function = looked_up_by(lambda train, one: train(ids_of(*next(one))))
    iterator = iter(dataset)
    function(iterator)
    lack = runtime.not_handed_once(iterator, dataset.element_spec)
    one = next(iterator)
    function(runtime.handing_out(one, dataset.element_spec, times=1))
    step = TracedTables([function])
    (found,) = step.tables
    (ids,) = found.looked_up(step.of_batch(one))
    say(name, lack=lack, ids=ids.tolist(),
        traced=function.experimental_get_tracing_count())

for name, steps_per_call in [("one step", 1), ("several steps", 4)]:
    model = simple(integers)
    read(model, "sgd", "mse", steps_per_execution=steps_per_call)
    counted_by(name, functions_of(model)[0])

keras.mixed_precision.set_global_policy("mixed_bfloat16")
of_classes("sixteen bits", flat, dense(), layers.Softmax(dtype="float32"))
rows, x = 2000, np.arange(1000, 1040).reshape(8, 5)
batch = (tf.constant(x), tf.constant(y))
stepped("bfloat16", simple(), "adam")

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
    stepped(name, own, "sgd")
"""
Steps = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def steps() -> Steps:
    return told_by(STEPS)


@pytest.mark.parametrize(
    ("name", "writes_whole", "slots", "passes_over_all", "peak_tables"),
    [
        ("adam", True, 2, True, 2),
        ("sgd", False, 0, False, 0),
        ("clipnorm", False, 0, False, 0),
        ("adagrad", False, 1, True, 2),
        ("rmsprop", True, 1, True, 2),
        ("momentum", True, 1, True, 2),
        ("decay", True, 0, True, None),
        ("global_clipnorm", True, 0, True, None),
        ("row-wise", False, 2, False, 0),
    ],
)
def test_what_each_optimizer_does_to_a_table(
    steps: Steps,
    name: str,
    writes_whole: bool,
    slots: int,
    passes_over_all: bool,
    peak_tables: float | None,
) -> None:
    step = steps[name]

    assert step["gradient"] == "sparse"
    assert (step["whole"], bool(step["operations"])) == (writes_whole, passes_over_all)
    assert step["slots"] == slots * 50 * 3 * 4
    assert peak_tables is None or step["temporaries"] == peak_tables * 50 * 3 * 4


def test_ids_are_those_of_the_batch(steps: Steps) -> None:
    adam, own = steps["adam"], steps["own loop"]

    assert adam["ids"] == own["ids"]
    # Arrays are what a step makes of them; a short last batch is traced beside the others.
    assert steps["own loop on arrays"]["ids"] == own["ids"]
    assert steps["behind a short batch"]["ids"] == own["ids"]
    assert adam["through"] is None
    assert steps["another"]["given"] is None


def test_ids_that_a_step_draws_by_itself_leave_those_of_the_batch(steps: Steps) -> None:
    assert steps["negatives"]["lookups"] == 2
    assert steps["negatives"]["ids"] == steps["own loop"]["ids"]
    assert "which can't be run again" in steps["without negatives"]["why"]


@pytest.mark.parametrize(
    ("name", "ids"),
    [("ragged", [1, 2, 3]), ("padded in the step", [[1, 2], [3, 0]]), ("sparse", [1, 2, 3])],
)
def test_ids_of_ragged_and_sparse_batches_are_those_of_what_the_step_draws(
    steps: Steps, name: str, ids: list[Any]
) -> None:
    found = steps[name]
    assert (found["lack"], found["ids"]) == (None, ids)
    assert found["traced"] == 1, "handed on, the batch is the one that the step was traced for"


def test_tables_of_one_shape_are_told_apart(steps: Steps) -> None:
    two = steps["two"]
    ids = steps["adam"]["ids"]

    assert two["slots"] == [2 * 50 * 3 * 4] * 2
    assert sorted(two["lookups"]) == [1, 2]
    ((alone,),) = (one for one in two["ids"] if len(one) == 1)
    assert alone == ids
    (both,) = (one for one in two["ids"] if len(one) == 2)
    assert sorted(both) == sorted([ids, [[id // 2 for id in row] for row in ids]])
    first, second = map(set, two["operations"])
    assert first
    assert second
    assert first.isdisjoint(second)


def test_an_array_that_the_step_reads_is_a_constant_of_its_graph(steps: Steps) -> None:
    assert 16_000 <= steps["constants of an array"]["held"] < 17_000


def test_ids_that_pass_a_float_are_those_that_are_looked_up(steps: Steps) -> None:
    step = steps["bfloat16"]

    assert step["through"] == "bfloat16"
    assert step["ids"][0] == [1000, 1000, 1000, 1004, 1004]


@pytest.mark.parametrize(
    ("way", "masked"),
    [
        ("gather", False),
        ("gather of a tensor", False),
        ("embedding_lookup", False),
        ("subclass", False),
        ("layer with a mask", True),
        ("own mask", True),
    ],
)
def test_ids_are_seen_on_each_way_to_look_rows_up(steps: Steps, way: str, masked: bool) -> None:
    step = steps[way]

    assert (step["rows"], step["through"], step["mask"]) == (50, "float16", masked)
    assert step["ids"] == [[0, 2048, 2048, 49, 7]]


@pytest.mark.parametrize(
    ("name", "copies", "reads"),
    [
        # Rows are scattered into it, so each read of it is a copy.
        ("sgd", 1, ["ReadVariableOp"]),
        ("adam", 0, ["ReadVariableOp"]),
        ("compiled", 0, ["ReadVariableOp"]),
        ("row-wise", 1, ["ReadVariableOp"]),
        ("cast", 1, ["Cast", "ReadVariableOp"]),
        ("not cast", 0, []),
    ],
)
def test_how_rows_are_looked_up(steps: Steps, name: str, copies: int, reads: list[str]) -> None:
    assert (steps[name]["copies"], steps[name]["work"]["copy"]) == (copies, reads)


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("row-wise", []),  # gradients of one row are summed: a row for each different id
        ("activity", []),
        ("cast", ["Cast"]),
        ("not cast", []),
        ("constrained", ["Mul", "Square"]),
    ],
)
def test_what_makes_tensors_as_large_as_the_table(
    steps: Steps, name: str, operations: list[str]
) -> None:
    assert (steps[name]["operations"], steps[name]["gradient"]) == (operations, "sparse")


def test_passes_are_the_optimizers_a_regularisers_and_a_constraints(steps: Steps) -> None:
    adam, regularised, constrained = (
        set(steps[name]["work"]["pass"]) for name in ("adam", "regularised", "constrained")
    )

    assert {"UnsortedSegmentSum", "Mul", "Sqrt", "AssignSubVariableOp"} <= adam
    assert steps["regularised"]["gradient"] == "dense"
    assert {"Square", "Sum"} <= regularised
    assert {"AssignVariableOp", "ResourceScatterSub"} <= constrained
    # Neither a lookup nor a product with the table.
    assert not {"GatherV2", "MatMul", "BatchMatMulV2"} & {
        *adam,
        *steps["tied weights"]["work"]["pass"],
    }


def test_logits_their_loss_and_the_update_of_their_weights_are_the_vocabularys(
    steps: Steps,
) -> None:
    found, tied = steps["vocabulary"], steps["tied weights"]

    assert {"MatMul", "SparseSoftmaxCrossEntropyWithLogits"} <= set(found["types"])
    assert {"AssignSubVariableOp", "Mul", "Sqrt"} <= set(found["types"])
    # Passes over a table are the table's.
    assert {"AssignSubVariableOp", "Sqrt"} <= set(tied["work"]["pass"])
    assert "AssignSubVariableOp" not in tied["types"]
    assert found["both"] == tied["both"] == []


def test_what_only_metrics_need_is_told(steps: Steps) -> None:
    found, none = steps["metrics over all"], steps["no metrics"]

    assert {"InTopKV2", "ReduceDatasetOp:"} <= set(found["kinds"])
    assert any("Einsum" in one or "MatMul" in one for one in found["kinds"])
    assert not any("MatMul" in one or "Softmax" in one for one in none["kinds"])
    assert (found["updates"], none["updates"]) == ([], [])
    # Averages of weights are no metric's.
    assert steps["averages"]["True"] == steps["averages"]["False"]


@pytest.mark.parametrize(
    ("name", "softmaxes"),
    [
        ("activation", [[70, 15, "sparse"]]),
        ("own activation", [[70, 15, "sparse"]]),
        ("one-hot", [[70, 15, "dense"]]),
        ("each word", [[70, 3, "sparse"]]),
        ("tied", [[70, 3, "sparse"]]),
        ("sixteen bits", [[70, 15, "sparse"]]),
        ("sampled", []),
    ],
)
def test_losses_that_take_a_softmax_over_all_rows_of_a_weight(
    steps: Steps, name: str, softmaxes: list[Any]
) -> None:
    assert steps[name]["softmaxes"] == softmaxes


@pytest.mark.parametrize(
    ("name", "gradient", "slots"),
    [
        ("mirrored", "sparse", 2),
        ("mirrored sgd", "sparse", 0),
        # It is exchanged as a whole, and came as rows all the same.
        ("mirrored norm of all", "sparse", 0),
        ("mirrored regularised", "dense", 0),
    ],
)
def test_replicas_have_a_gradient_as_one_device_has(
    steps: Steps, name: str, gradient: str, slots: int
) -> None:
    assert (steps[name]["gradient"], steps[name]["slots"]) == (gradient, slots * 50 * 3 * 4)


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("draws once", True),
        ("draws once or none", False),
        ("draws nothing", True),
        ("draws twice", False),
        ("draws from two", False),
        ("draws in a loop", False),
        ("one step", True),
        ("several steps", False),
    ],
)
def test_which_calls_draw_what_is_counted(steps: Steps, name: str, counted: bool) -> None:
    assert steps[name]["counted"] is counted
