"""A function that makes several pipelines: an edit that suits each is written, with a note."""

from __future__ import annotations

from dataclasses import replace
from textwrap import indent
from typing import Any

import pytest

from pipediag.patching import workspace
from pipediag.patching.making import make_patch
from pipediag.patching.source import NotPatchableError
from pipediag.session.edits import AUTOTUNE, Change, Edit, Insert, Move, SetOptions, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recording import RowOperation
from tests.factories import make_loop
from tests.ledgers import make_run
from tests.patching.scripts import SCRIPT, chained, line_of, op, patch, patched, refused, session_of
from tests.records import make_function, make_pipeline

TEXT = """import tensorflow as tf

def dataset(texts, labels):
    ds = tf.data.Dataset.from_tensor_slices((texts, labels))
    ds = ds.shuffle(len(texts), seed=8)
    ds = ds.map(featurise)
    return ds.batch(64)

model.fit(dataset(texts, labels), epochs=6)

if os.environ.get("FACTS"):
    batches = [batch for batch in dataset(texts, labels).take(40)]
"""
OPS = [op(TEXT, kind) for kind in ("from_tensor_slices", "shuffle", "map", "batch")]


@pytest.mark.parametrize(
    "change",
    [
        Insert("map", "cache", {}),
        SetParameters("batch", {"batch_size": 128}),
        SetParameters("shuffle", {"buffer_size": 128}),
        Move("batch", "shuffle"),
        SetOptions({"deterministic": False}),
    ],
)
def test_what_changes_what_is_drawn_or_learnt_is_refused(change: Change) -> None:
    """A cache behind the shuffle freezes the order for whoever reads the data more than once."""
    assert "used in 2 places" in refused(TEXT, OPS, change)


HEAD = "import tensorflow as tf\n"
CACHE = (Insert("map", "cache", {}),)
BATCH_FIRST = (Move("map", "batch"),)
TWO_CALLS = "a = make(x, True)\nb = make(y, False)\n"


def factory(body: str, calls: str = TWO_CALLS, head: str = "def make(x, training):\n") -> str:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{HEAD}\n{head}{lines}\n{calls}"


def ops_of(text: str) -> list[Operation]:
    kinds = [kind for kind in ("shuffle", "map", "batch") if f".{kind}(" in text]
    return [op(text, kind, f".{kind}(") for kind in sorted(kinds, key=text.index)]


OPTIONAL_SHUFFLE = (
    "ds = read(x)\nif training:\n    ds = ds.shuffle(9)\nds = ds.map(parse)\nreturn ds.batch(8)"
)
SHUFFLE_BETWEEN = (
    "ds = read(x).map(parse)\nif training:\n    ds = ds.shuffle(9)\nreturn ds.batch(8)"
)


@pytest.mark.parametrize(
    ("body", "changes", "after"),
    [
        (
            OPTIONAL_SHUFFLE,
            (Move("shuffle", "map"), *CACHE),
            "ds = read(x)\nds = ds.map(parse)\nds = ds.cache()\nif training:\n"
            "    ds = ds.shuffle(9)\nreturn ds.batch(8)",
        ),
        (
            SHUFFLE_BETWEEN,
            CACHE,
            "ds = read(x).map(parse).cache()\nif training:\n    ds = ds.shuffle(9)\n"
            "return ds.batch(8)",
        ),
        (
            SHUFFLE_BETWEEN,
            BATCH_FIRST,
            "ds = read(x)\nif training:\n    ds = ds.shuffle(9)\nreturn ds.batch(8).map(parse)",
        ),
        (
            "ds = read(x[:9] if training else x)\nreturn ds.map(parse).batch(8)",
            BATCH_FIRST,
            "ds = read(x[:9] if training else x)\nreturn ds.batch(8).map(parse)",
        ),
    ],
)
def test_operations_that_a_caller_chooses_do_not_stand_in_the_way(
    body: str, changes: tuple[Change, ...], after: str
) -> None:
    text = factory(body)
    changed = patched(text, ops_of(text), *changes)
    assert changed == factory(after)


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        (OPTIONAL_SHUFFLE, CACHE),
        ("ds = read(x)\nif training:\n    ds = ds.filter(good)\nreturn ds.map(parse)", CACHE),
        (SHUFFLE_BETWEEN.replace("shuffle(9)", "filter(good)"), BATCH_FIRST),
        (SHUFFLE_BETWEEN.replace("ds.shuffle(9)", "augment(ds)"), BATCH_FIRST),
        ("f = a if training else b\nreturn read(x).map(f).batch(8)", BATCH_FIRST),
        ("f = a\nif training:\n    f = b\nreturn read(x).map(f).batch(8)", BATCH_FIRST),
        ("if training:\n    return read(x)\nreturn read(x).map(parse).batch(8)", BATCH_FIRST),
        ("return x.map(parse).batch(8)", CACHE),
        ("fn = partial(f, training)\nreturn read(x).map(fn).batch(8)", CACHE),
        ("ds = read(x)\nfor f in training:\n    ds = ds.map(f)\nreturn ds.batch(8)", CACHE),
        ("return read(x).map(lambda e: parse(e, training)).batch(8)", BATCH_FIRST),
        (
            "def augment(e):\n    return flip(e) if training else e\ndef load(e):\n"
            "    return tf.numpy_function(augment, [e], tf.uint8)\n"
            "return read(x).map(load).batch(8)",
            CACHE,
        ),
    ],
)
def test_what_a_caller_chooses_is_not_frozen_or_passed_over(
    body: str, changes: tuple[Change, ...]
) -> None:
    text = factory(body)
    refused(text, ops_of(text), *changes)


def test_a_function_in_the_factory_may_have_its_own_names() -> None:
    text = factory("def load(x):\n    y = x\n    return y\nreturn read(x).map(load).batch(8)")
    assert ".map(load).cache()" in patched(text, ops_of(text), *CACHE)


@pytest.mark.parametrize(
    "loop",
    [
        "get = lambda: make(x, epoch)\n    for epoch in range(5):\n        ds = get()",
        "for epoch in range(5):\n        ds = make(random.sample(x, 9), True)",
    ],
)
def test_what_a_lambda_or_a_draw_makes_anew_is_not_made_before_its_loop(loop: str) -> None:
    calls = f"def main():\n    {loop}\n        model.fit(ds)\n\nmain()\n"
    text = factory("return read(x).map(parse).batch(8)", calls)
    refused(text, ops_of(text), *CACHE, keras={"epochs": 1})


FILES = (
    "ds = tf.data.Dataset.from_tensor_slices(x)\nif training:\n    ds = ds.shuffle(len(x))\n"
    "ds = ds.interleave(read)\nds = ds.map(parse)\n"
)


@pytest.mark.parametrize("mixed", [True, False])
def test_files_may_stay_shuffled_before_a_cache_if_its_elements_are_shuffled_too(
    mixed: bool,
) -> None:
    after = "if training:\n    ds = ds.shuffle(9)\n" if mixed else ""
    text = factory(f"{FILES}{after}return ds.batch(8)")
    ops = [op(text, "shuffle", ".shuffle(len", id="files")]
    ops += [op(text, "interleave", ".interleave("), op(text, "map", ".map(")]
    ops += [op(text, "shuffle", ".shuffle(9")] if mixed else []
    ops.append(op(text, "batch", ".batch("))
    if mixed:
        assert "ds.map(parse)\n    ds = ds.cache()\n" in patched(text, chained(*ops), *CACHE)
    else:
        refused(text, chained(*ops), *CACHE)


def test_options_that_change_no_element_hold_for_all_pipelines() -> None:
    text = factory("return read(x).map(parse).batch(8)")
    ops = chained(*ops_of(text))
    assert "with_options" in patched(text, ops, SetOptions({"autotune.enabled": False}))
    refused(text, ops, SetOptions({"deterministic": False}))


METHOD = """import tensorflow as tf

class Data:
    def parse(self, row):
        return row

    def make(self, x):
        return read(x).map(self.parse).batch(8)

a = train.make(x)
b = train.make(y)
"""
OTHER_OBJECT = METHOD.replace("b = train", "b = test")


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (OTHER_OBJECT, True),
        (OTHER_OBJECT.replace("map(self.parse)", "map(self.given)"), False),
        (METHOD.replace("return row", "return cut(row, self.size)"), True),
        (OTHER_OBJECT.replace("return row", "return cut(row, self.size)"), False),
        (OTHER_OBJECT.replace("return row", "return self.cut(row)"), False),
        (
            OTHER_OBJECT.replace("return row", "yield self.size")
            .replace("read(x)", "tf.data.Dataset.from_generator(self.parse, SPEC)")
            .replace("map(self.parse)", "map(parse)"),
            True,
        ),
    ],
)
def test_methods_make_their_pipelines_alike_unless_objects_hold_other_functions(
    text: str, right: bool
) -> None:
    made, _ = patch(text, ops_of(text), *BATCH_FIRST)
    assert (made.diff is not None) == right


WITH_STATE = OTHER_OBJECT.replace("return row", "return cut(row, self.size)")
MADE_HERE = WITH_STATE.replace("a = train", "def main(data: Data):\n    first = data")
MADE_HERE = MADE_HERE.replace("b = test", "    second = self.data")


@pytest.mark.parametrize(
    ("made", "right"),
    [
        ("\nmain(Data())\n", True),
        ("\nmain(Data())\nmain(Data())\n", False),
        ("\nfor size in sizes:\n    main(Data(size))\n", False),
        ("\nclass Other(Data): pass\n\nmain(Other())\nmain(Data())\n", False),
    ],
)
def test_methods_of_the_only_object_make_their_pipelines_alike(made: str, right: bool) -> None:
    """Its methods may call it by other names than the rest of the program."""
    changed, _ = patch(MADE_HERE + made, ops_of(MADE_HERE), *CACHE)
    assert (changed.diff is not None) == right


@pytest.mark.parametrize(("parses", "right"), [("row", True), ("cut(row, self.size)", False)])
def test_what_a_class_makes_when_it_is_created_is_made_for_each_object(
    parses: str, right: bool
) -> None:
    made = METHOD.replace(
        "def make(self, x):\n        return", "def __init__(self, x):\n        self.ds ="
    )
    made = made.replace("train.make", "Data").replace("return row", f"return {parses}")
    made += "def fit(data: Data): pass\n"
    changed, _ = patch(made, ops_of(made), *CACHE)
    assert (changed.diff is not None) == right


KEPT = """
class Trainer:
    def __init__(self, make):
        self.make = make

    def fit(self):
        model.fit(self.make)

"""
DECLARED = KEPT.replace("def __init__(self, make):\n        self.make = make", "make: Dataset")


@pytest.mark.parametrize(
    "kept", [KEPT, DECLARED, KEPT.replace("self.make = make", "self.x = make")]
)
def test_what_an_object_of_another_class_keeps_by_that_name_is_no_use(kept: str) -> None:
    text = METHOD.replace("b = train.make(y)\n", "").replace("a = ", f"{kept}a = ")
    made, _ = patch(text, ops_of(text), SetParameters("map", {"deterministic": False}))
    assert (made.diff is not None) == ("self.x" not in kept)


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        ("a = make(x, vectorize)\nb = make(y, vectorize)\n", True),
        ("a = make(x, vectorize)\nb = make(y, clean)\n", False),
        ("a = make(x, vectorizer(3))\nb = make(y, vectorizer(3))\n", False),
        ("a = make(x, vectorize)\ndef f(vectorize):\n    return make(y, vectorize)\n", False),
    ],
)
def test_a_function_that_all_callers_hand_over_is_one(calls: str, right: bool) -> None:
    text = factory("return read(x).map(training).batch(8)", calls)
    made, _ = patch(text, ops_of(text), *CACHE)
    assert (made.diff is not None) == right


PARSED = factory(
    "ds = read(x)\nds = ds.map(row)\nreturn ds.batch(8)",
    head="def row(r):\n    e = tf.io.parse_single_example(r, SPEC)\n    return e\n\n\n"
    "def make(x, training):\n",
)


def on(text: str, op: str, needle: str, *, through: str = "", **more: Any) -> RowOperation:
    """An operation made on the line with the needle, in a function called on another line."""
    places = [(SCRIPT, line_of(text, each)) for each in (through, needle) if each]
    return RowOperation(op, places, **more)


def parsing(text: str) -> list[Operation]:
    [at] = [n for n, line in enumerate(text.split("\n"), 1) if "parse_single" in line]
    inside = "lambda r: row" in text
    calls = [(SCRIPT, line_of(text, "lambda r: row"))] if inside else []
    function = make_function(
        file=SCRIPT,
        line=line_of(text, "def row") if not inside else calls[0][1],
        graph_ops={"ParseExampleV2": 1},
        row_operations=[RowOperation("ParseExampleV2", [*calls, (SCRIPT, at)])],
    )
    return [op(text, "map", ".map(", function=function), op(text, "batch", ".batch(")]


@pytest.mark.parametrize(
    "text",
    [
        PARSED,
        PARSED.replace("map(row)", "map(lambda r: row(r))"),
        PARSED.replace("map(row)", "map(lambda r: tf.io.parse_single_example(r, SPEC))").replace(
            "e = tf.io.parse_single_example(r, SPEC)", "e = r"
        ),
    ],
)
def test_what_parses_rows_parses_batches_behind_the_batch(text: str) -> None:
    after = patched(text, parsing(text), *BATCH_FIRST)
    assert after.count("tf.io.parse_example(r, SPEC)") == 1
    assert "parse_single_example" not in after
    assert after.index(".batch(") < after.index(".map(")


@pytest.mark.parametrize(
    ("shape", "written"),
    [
        ("e.set_shape([64])", "e.set_shape([None, 64])"),
        ("e.set_shape(SHAPE)", "e.set_shape([None, *SHAPE])"),
        ("e = e + 1\n    e.set_shape(e.shape)", "e.set_shape(e.shape)"),
        ("e.set_shape(spec.shape)", "e.set_shape([None, *spec.shape])"),
        ("e.set_shape(of(e))", None),
    ],
)
def test_a_shape_of_a_parsed_row_gets_a_dimension_for_the_batch(
    shape: str, written: str | None
) -> None:
    text = PARSED.replace("    return e\n", f"    {shape}\n    return e\n")
    if written is None:
        refused(text, parsing(text), *BATCH_FIRST)
    else:
        assert f"    {written}\n" in patched(text, parsing(text), *BATCH_FIRST)


def test_a_shape_gets_a_dimension_where_nothing_else_is_for_single_rows() -> None:
    text = PARSED.replace("tf.io.parse_single_example(r, SPEC)", "tf.ensure_shape(r, [])")
    function = make_function(file=SCRIPT, line=line_of(text, "def row"), row_operations=[])
    calls = [op(text, "map", ".map(", function=function), op(text, "batch", ".batch(")]
    assert "tf.ensure_shape(r, [None])" in patched(text, calls, *BATCH_FIRST)


@pytest.mark.parametrize(
    "text",
    [PARSED + "first = row(next(records))\n", PARSED.replace("tf.io.parse_single", "parse_single")],
)
def test_a_parser_that_others_use_or_that_is_not_found_stays(text: str) -> None:
    refused(text, parsing(text), *BATCH_FIRST)


FEATURES = factory(
    "ds = read(x)\nds = ds.map(row)\nreturn ds.batch(8)",
    head="""def bucket(value, edges):
    above = tf.cast(value >= tf.constant(edges), tf.int64)
    return tf.reduce_sum(above)


def row(r):
    a, b = tf.io.decode_csv(r, SPEC)
    known = tf.math.reduce_any(COUNTRIES == b)
    label = tf.reshape(a, [1])
    first = tf.expand_dims(tf.argmax(a * WEIGHTS), 0)
    return {
        "a": bucket(a, (1, 2)),
        "b": bucket(b, (3, 4)),
    }, known, label, first


def make(x, training):
""",
)
"""A function that compares the columns of a row with lists, through a function for each column."""


def bucketing(text: str) -> list[Operation]:
    called = "        }, known" if "        }, known" in text else "}, known"
    rows = [
        on(text, "GreaterEqual", "above = ", through=called, rank=0, operand=0, count=2),
        on(text, "Sum", "reduce_sum(", through=called, rank=1, count=2),
        on(text, "Equal", "known = ", rank=0, operand=1),
        on(text, "Any", "known = ", rank=1),
        on(text, "Reshape", "label = ", rank=0),
        on(text, "Mul", "first = ", rank=0, operand=0),
        on(text, "ArgMax", "first = ", rank=1),
        on(text, "ExpandDims", "first = ", rank=0),
    ]
    function = make_function(
        file=SCRIPT, line=line_of(text, "def row"), graph_ops={"DecodeCSV": 1}, row_operations=rows
    )
    return [op(text, "map", ".map(", function=function), op(text, "batch", ".batch(")]


def test_what_a_row_compares_with_a_list_is_compared_for_each_row_of_a_batch() -> None:
    after = patched(FEATURES, bucketing(FEATURES), *BATCH_FIRST)
    for line in (
        "above = tf.cast(tf.expand_dims(value, 1) >= tf.constant(edges), tf.int64)",
        "return tf.reduce_sum(above, axis=1)",
        "known = tf.math.reduce_any(COUNTRIES == tf.expand_dims(b, 1), axis=1)",
        "label = tf.reshape(a, [-1, 1])",
        "first = tf.expand_dims(tf.argmax(tf.expand_dims(a, 1) * WEIGHTS, axis=1), 1)",
    ):
        assert f"    {line}\n" in after


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\ndef make", "\nFIRST = bucket(3, (1, 2))\n\n\ndef make"),
        ("tf.constant(edges)", "tf.constant(edges) + (value >= 3)"),
        ("(a, [1])", "(a, [-1])"),
        ("WEIGHTS)", "WEIGHTS, AXIS)"),
        ("known = tf.math.reduce_any(", "known = exists("),
    ],
    ids=["shared", "two compare", "a computed size", "an unknown axis", "not found"],
)
def test_what_may_be_no_form_for_batches_is_refused(old: str, new: str) -> None:
    text = FEATURES.replace(old, new)
    assert refused(text, bucketing(text), *BATCH_FIRST)


def test_a_function_of_another_module_is_rewritten_there() -> None:
    text = FEATURES.replace("map(row)", "map(features.row)")
    ops = [
        replace(each, file="/work/input.py", line=line_of(text, f".{each.kind}("))
        for each in bucketing(text)
    ]
    files = {SCRIPT: text.split("def make")[0], "/work/input.py": text[text.index("def make") :]}
    head = "import tensorflow as tf\nimport train as features\n"
    before = text[: text.index("def make")].count("\n")
    files["train.py"] = ""
    files["/work/input.py"] = head + "\n" * (before - 2) + files["/work/input.py"]
    session = session_of(text, *ops)
    made, after = make_patch(
        session, [Edit("e", "an edit", BATCH_FIRST)], lambda path: files[path].encode()
    )
    assert made.left_out == []
    assert b"reduce_sum(above, axis=1)" in after[SCRIPT]
    assert b".batch(8).map(features.row)" in after["/work/input.py"]


DECODING = """class Input:
    def decoded(self, ds, dropout=0.0):
        fn = functools.partial(decode, dropout=dropout)
        return ds.map(fn)

    def train(self):
        ds = self.decoded(read("train"), self.dropout)
        return ds.shuffle(9).batch(8)

    def valid(self):
        return self.decoded(read("valid")).batch(8)


data = Input()
train, valid = data.train(), data.valid()
"""


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("", "", True),
        ("return ds.map(fn)", "print(3)\n        return ds.map(fn)", False),
        ("ds.shuffle(9)", "ds.concatenate(self.decoded(more)).shuffle(9)", False),
        ("data.train(), data", "[data.train() for fold in folds], data", False),
    ],
    ids=["once", "more than that", "twice", "in a loop"],
)
def test_a_cache_behind_a_shared_helper_is_written_where_its_pipeline_calls_it(
    old: str, new: str, written: bool
) -> None:
    text = DECODING.replace(old, new)
    ops = [op(text, kind, needle) for kind, needle in (("map", ".map("), ("shuffle", ".shuffle("))]
    edit = Edit("e", "an edit", (Insert("map", "cache"),))
    made, after = make_patch(session_of(text, *ops), [edit], lambda _path: text.encode())
    assert (made.diff is not None) == written
    if written:
        assert b'self.decoded(read("train"), self.dropout).cache()\n' in after[SCRIPT]
        assert after[SCRIPT].count(b".cache()") == 1


SHARED = factory(
    "ds = read(x)\nif not training:\n    ds = ds.map(other)\nds = ds.map(parse)\n"
    "return ds.batch(8).prefetch(1)",
    calls="val = make(0, False)\nTRAIN\n",
)
OWN_LOOP = """def evaluate(model, data):
    for x, y in data:
        score(model(x), y)
for epoch in range(4):
    for x, y in make(1, True):
        step(x, y)
    evaluate(model, val)"""
TRAINER = """class Trainer:
    def __init__(self, training, held_out):
        self.held_out = held_out
    def evaluate(self):
        for x, y in tqdm(self.held_out):
            score(x, y)
    def fit(self):
        for epoch in range(4):
            self.evaluate()
Trainer(make(1, True), val).fit()"""
CALLBACK = """class Scores(Callback):
    def __init__(self, data):
        self.data = data
    def on_epoch_end(self, epoch, logs=None):
        for x, y in self.data:
            score(x, y)
model.fit(make(1, True), callbacks=[Scores(val)])"""


@pytest.mark.parametrize(
    ("training", "reads", "expected"),
    [
        ("model.fit(make(1, True), validation_data=val)", ".fit", "validation_data=val.cache())"),
        ("model.fit(make(1, True), validation_data=(a, b))", ".fit", None),
        ("for val in parts:\n    model.fit(make(1, True), validation_data=val)", ".fit", None),
        (
            OWN_LOOP,
            "y in data",
            "\nevaluation_data = val.cache()\nfor epoch in range(4):\n"
            "    for x, y in make(1, True):\n        step(x, y)\n"
            "    evaluate(model, evaluation_data)\n",
        ),
        (
            f"{OWN_LOOP}\nevaluate(model, test)",
            "y in data",
            "    evaluate(model, evaluation_data)\n",
        ),
        (f"{OWN_LOOP}\n    evaluate(model, test)", "y in data", None),
        (OWN_LOOP.replace("model, val)", "model, make(0, False))"), "y in data", None),
        (
            "for epoch in range(4):\n    fit(make(1, True))\n"
            "    print(model.evaluate(val, verbose=0))",
            ".evaluate",
            "\nevaluation_data = val.cache()\nfor epoch in range(4):\n    fit(make(1, True))\n"
            "    print(model.evaluate(evaluation_data, verbose=0))",
        ),
        (TRAINER, "y in tqdm", "self.held_out = held_out.cache()\n"),
        (f"{TRAINER}\nTrainer(a, b)", "y in tqdm", None),
        (
            TRAINER.replace("def fit", "def swap(self):\n        self.held_out = x\n    def fit"),
            "y in tqdm",
            None,
        ),
        (CALLBACK, "y in self", "self.data = data.cache()\n"),
        (CALLBACK.replace("in self.data", "in make(0, False)"), "y in make", None),
        # What may be missing, no dataset, read in part, or read in a function that others call.
        (
            OWN_LOOP.replace(
                "    evaluate(model, val)", "    if val is not None:\n        evaluate(model, val)"
            ),
            "y in data",
            None,
        ),
        (
            OWN_LOOP.replace("evaluate(model, val)", "[evaluate(model, val) for val in (a, b)]"),
            "y in data",
            None,
        ),
        (OWN_LOOP.replace("x, y in data", "x, y in zip(names, data)"), "y in zip", None),
        (OWN_LOOP.replace("score(model(x), y)", "break"), "y in data", None),
        (
            "for epoch in range(4):\n    fit(make(1, True))\n    model.evaluate(val, steps=3)",
            ".evaluate",
            None,
        ),
        (
            "def scores(epoch, logs):\n    for x, y in val:\n        score(x, y)\n"
            "model.fit(make(1, True), callbacks=[LambdaCallback(on_epoch_end=scores)])",
            "y in val",
            None,
        ),
        (
            OWN_LOOP.replace("x, y in data", "n, (x, y) in enumerate(zip(names, data))"),
            "in enumerate",
            None,
        ),
        (OWN_LOOP.replace("score(model(x), y)", "return score(model(x), y)"), "y in data", None),
        (
            "if given:\n    held = make(0, False)\nmodel.fit(make(1, True), validation_data=held)",
            ".fit",
            None,
        ),
        (
            "if __name__ == '__main__':\n    held = make(0, False)\n"
            "    model.fit(make(1, True), validation_data=held)",
            ".fit",
            "validation_data=held.cache())",
        ),
        (
            "def main(_):\n    model.fit(make(1, True), validation_data=val)\napp.run(main)",
            ".fit",
            "validation_data=val.cache())",
        ),
    ],
)
def test_a_cache_for_an_evaluation_alone_is_written_where_its_loop_gets_the_data(
    training: str, reads: str, expected: str | None
) -> None:
    after = evaluation_cached(SHARED.replace("TRAIN", training), reads, "prefetch")
    assert (after is None) == (expected is None)
    assert after is None or (expected in after and after.count(".cache()") == 1)


def test_no_such_cache_stands_behind_a_shuffle() -> None:
    training = "model.fit(make(1, True), validation_data=val)"
    text = SHARED.replace("TRAIN", training).replace(".prefetch(1)", ".shuffle(9)")
    assert evaluation_cached(text, ".fit", "shuffle") is None


@pytest.mark.parametrize(
    "given", [{"handed_on": True}, {"kind": "distributed"}, {"role": "training"}]
)
def test_no_such_cache_stands_behind_what_is_no_dataset_or_trains(given: dict[str, Any]) -> None:
    assert (
        evaluation_cached(SHARED.replace("TRAIN", OWN_LOOP), "y in data", "prefetch", **given)
        is None
    )


def test_changes_of_a_file_stay_where_another_file_holds_the_evaluation() -> None:
    other = "/work/evaluation.py"
    loop, training = OWN_LOOP.split("for epoch", 1)
    text = SHARED.replace("TRAIN", f"from evaluation import evaluate\nfor epoch{training}")
    files = {SCRIPT: text, other: loop}
    edit = Edit("p", "parallel", (SetParameters("map", {"num_parallel_calls": AUTOTUNE}),))
    session = evaluated(text, "prefetch", file=other, line=2)
    cache = Edit("e", "an edit", (Insert("batch", "cache"),), loop_id="v")

    def read(path: str) -> bytes:
        if path not in files:
            raise NotPatchableError("There are two files.")
        return files[path].encode()

    made, after = make_patch(session, [edit, cache], read)
    assert made.left_out == []
    assert b"num_parallel_calls" in after[SCRIPT]
    assert b"evaluation_data = val.cache()" in after[SCRIPT]


def evaluation_cached(text: str, reads: str, last: str, **given: Any) -> str | None:
    """Return the script with a cache behind the batch for the evaluation whose loop is on the line
    with this text; None where it is refused."""
    session = evaluated(text, last, line=line_of(text, reads), **given)
    edit = Edit("e", "an edit", (Insert("batch", "cache"),), loop_id="v")
    made, after = make_patch(session, [edit], lambda _path: text.encode())
    return None if made.diff is None else after[SCRIPT].decode()


def evaluated(text: str, last: str, **given: Any) -> Session:
    """Return the session of a script with an evaluation on a pipeline that ends so."""
    ops = [
        op(text, kind, ".map(parse" if kind == "map" else f".{kind}(")
        for kind in ("map", "batch", last)
    ]
    pipeline = make_pipeline(ops=chained(*ops), bottleneck_op_id=None)
    values = {"id": "v", "role": "validation", "file": SCRIPT, "pipeline": pipeline, **given}
    session = session_of(text)
    return session.but(loops=[*session.loops, make_loop(**values)])


def test_a_shuffle_under_a_condition_moves_up_before_the_map() -> None:
    text = factory(
        "ds = files.interleave(read)\nds = ds.map(parse)\nif training:\n"
        "    ds = ds.shuffle(9)\nreturn ds.batch(8)"
    )
    ops = [op(text, kind, f".{kind}(") for kind in ("interleave", "map", "shuffle", "batch")]
    after = patched(text, ops, Move("shuffle", "interleave"))
    assert (
        "ds = files.interleave(read)\n    if training:\n        ds = ds.shuffle(9)\n"
        "    ds = ds.map(parse)\n    return ds.batch(8)\n" in after
    )


@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("lambda r, y: (row(r), y)", "(lambda r, y: (row(r), y))"),
        ("partial(row, size=2)", "partial(row, size=2)"),
        ("row if SMALL else other", "(row if SMALL else other)"),
    ],
)
def test_the_rows_of_a_batch_are_handed_to_the_function_as_it_is(given: str, called: str) -> None:
    text = PARSED.replace(".map(row)", f".map({given})") + "first = row(next(records))\n"
    after = patched(text, parsing(text), Move("map", "batch", vectorized=True))
    written = f"lambda *rows: tf.vectorized_map(lambda row_2: {called}(*row_2), rows)"
    assert f".batch(8).map({written})" in after
    assert "tf.io.parse_single_example" in after


@pytest.mark.parametrize(
    "chain",
    [".map(first).map(second).batch(8)", ".map(first)\nds = ds.map(second)\nds = ds.batch(8)"],
)
@pytest.mark.parametrize("vectorized", [False, True])
def test_maps_that_move_together_keep_their_order(chain: str, vectorized: bool) -> None:
    text = factory(f"ds = read(x){chain}\nreturn ds")
    maps = [op(text, "map", f".map({one}", id=one) for one in ("first", "second")]
    ops = chained(op(text, "read", "read("), *maps, op(text, "batch", ".batch("))
    moves = (Move("first", "batch", vectorized=vectorized), Move("second", "first"))
    after = patched(text, ops, *moves)
    assert after.index(".batch(8)") < after.index("first") < after.index(".map(second)")


GENERATED = factory(
    "def rows():\n    for line in open(x):\n        yield parse(line)\n\n"
    "ds = tf.data.Dataset.from_generator(rows, output_signature=SPEC)\n"
    "if training:\n    ds = ds.shuffle(9)\nreturn ds.batch(8)"
)


BRANCHES = (
    "if training:\n    ds = read(x).shuffle(9).map(parse)\nelse:\n    ds = read(x)\n"
    "return ds.batch(8)"
)


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        (TWO_CALLS, True),
        ("a = make(x, True)\nb = make(y, flag)\n", False),
        ("a = make(x, True)\nb = make(y, True)\n", False),
    ],
)
def test_a_branch_belongs_to_the_caller_that_chooses_it(calls: str, right: bool) -> None:
    text, larger = factory(BRANCHES, calls), SetParameters("shuffle", {"buffer_size": 128})
    if right:
        assert ".shuffle(128)" in patched(text, ops_of(text), larger)
    else:
        assert "used in 2 places" in refused(text, ops_of(text), larger)
    batch = SetParameters("batch", {"batch_size": 128})
    assert "used in 2 places" in refused(text, ops_of(text), batch)


@pytest.mark.parametrize(
    ("adds", "right"),
    [
        ("ds = ds.shuffle(9).repeat()", True),
        ("ds = ds.shuffle(9)\n    ds = ds.repeat()", True),
        ("ds = ds.shuffle(9).filter(known).repeat()", False),
        ("ds = ds.shuffle(9)\n    shown = ds.repeat()", False),
        ("ds = other.shuffle(9).repeat()", False),
    ],
)
def test_what_a_condition_adds_moves_as_a_whole(adds: str, right: bool) -> None:
    text = factory(
        f"ds = read(x)\nif training:\n    {adds}\nds = ds.map(parse)\nreturn ds.batch(8)"
    )
    kinds = ("shuffle", "repeat", "map", "batch")
    ops = chained(*(op(text, kind, f".{kind}(") for kind in kinds))
    changes = (Move("shuffle", "map"), Move("repeat", "shuffle"), *CACHE)
    if right:
        assert (
            f"    ds = ds.map(parse)\n    ds = ds.cache()\n    if training:\n"
            f"        {adds.replace('    ', '        ')}\n    return ds.batch(8)\n"
        ) in patched(text, ops, *changes)
    else:
        refused(text, ops, *changes)


@pytest.mark.parametrize(
    ("lines", "change"),
    [
        # It would be left out where nothing is augmented.
        ("ds = read(x).shuffle(9)\nif AUGMENT:\n    ds = ds.map(parse)\n", Move("shuffle", "map")),
        # It would get single rows where nothing is batched.
        (
            "ds = read(x)\nds = ds.map(parse)\nif BATCH:\n    ds = ds.batch(8)\n",
            Move("map", "batch"),
        ),
        # The `repeat` would move along, which the shuffle was to pass.
        (
            "ds = read(x)\nds = ds.map(parse)\nif REPEAT:\n    ds = ds.repeat().shuffle(9)\n",
            Move("shuffle", "read"),
        ),
    ],
)
def test_nothing_moves_into_a_condition_or_with_what_it_was_to_pass(
    lines: str, change: Change
) -> None:
    text = f"{HEAD}\n{lines}"
    kinds = [kind for kind in ("shuffle", "repeat", "map", "batch") if f".{kind}(" in text]
    ops = [op(text, "read", "read(x)")]
    ops += [op(text, kind, f".{kind}(") for kind in sorted(kinds, key=text.index)]
    refused(text, chained(*ops), change)


OPTIONAL_MAP = (
    "ds = read(x)\nif training:\n    ds = ds.shuffle(9)\nif parse is not None:\n"
    "    ds = ds.map(parse)\nreturn ds.batch(8)"
)


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        ("a = make(x, True, f)\nb = make(y, parse=f)\nc = make(x)\n", True),
        ("a = make(x, True, f)\nb = make(y, parse=f)\nc = make(x, parse=g)\n", False),
    ],
)
def test_a_shuffle_moves_behind_a_map_that_is_optional_as_well(calls: str, right: bool) -> None:
    text = f"def make(x, training=False, parse=None):\n{indent(OPTIONAL_MAP, '    ')}\n\n{calls}"
    changes = (Move("shuffle", "map"), Insert("map", "cache", {}))
    if right:
        assert (
            "ds = read(x)\n    if parse is not None:\n        ds = ds.map(parse)\n"
            "        ds = ds.cache()\n    if training:\n        ds = ds.shuffle(9)\n"
            "    return ds.batch(8)\n" in patched(text, ops_of(text), *changes)
        )
    else:
        assert "used in 3 places" in refused(text, ops_of(text), *changes)


@pytest.mark.parametrize("given", ["rows", "lambda: rows()", "lambda: read(x)"])
def test_what_a_generator_yields_is_data_that_may_differ_between_the_callers(given: str) -> None:
    text = GENERATED.replace("(rows,", f"({given},")
    ops = [op(text, kind, f".{kind}(") for kind in ("from_generator", "shuffle", "batch")]
    after = patched(text, ops, Insert("from_generator", "cache", {}))
    assert "cache()\n    if training:" in after


def test_whether_there_is_a_generator_is_no_data() -> None:
    text = GENERATED.replace(
        "ds = tf.data.D", "if training:\n        x = noisy(x).shuffle(3)\n    ds = tf.data.D"
    )
    ops = [op(text, kind, f".{kind}(") for kind in ("from_generator", "batch")]
    assert "used in 2 places" in refused(text, ops, Insert("from_generator", "cache", {}))


FACTORY = HEAD + "def data(training):\n    return read(training).map(f)\n\n\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "for epoch in range(9):\n    for n, b in enumerate(data(True)):\n        step(b)\n",
            "training_data = data(True)\nfor epoch in range(9):\n"
            "    for n, b in enumerate(training_data):\n        step(b)\n",
        ),
        (
            "while more():\n    batches = data(True)\n    for b in batches:\n        step(b)\n",
            "batches = data(True)\nwhile more():\n    for b in batches:\n        step(b)\n",
        ),
        (
            "def train(files):\n    for fold in range(2):\n        for epoch in range(9):\n"
            "            for b in data(files):\n                step(b)\n\n\ntrain(x)\n",
            "def train(files):\n    training_data = data(files)\n    for fold in range(2):\n"
            "        for epoch in range(9):\n            for b in training_data:\n"
            "                step(b)\n\n\ntrain(x)\n",
        ),
    ],
)
def test_a_dataset_that_is_to_keep_its_elements_is_created_before_the_loop(
    before: str, after: str
) -> None:
    text = FACTORY + before
    assert patched(text, [op(text, "map")], *CACHE) == FACTORY.replace("(f)", "(f).cache()") + after


KINDS = ("map", "take")


def test_maps_that_a_loop_adds_are_left_alone() -> None:
    text = f"{HEAD}for step in STEPS:\n    ds = ds.map(step)\n"
    maps = chained(*(op(text, "map", ".map(", id=f"map{n}") for n in range(3)))
    parallel = SetParameters("map1", {"num_parallel_calls": AUTOTUNE})
    for change in (parallel, Insert("map1", "cache", {})):
        assert "more than once" in refused(text, maps, change)
    text, caches = text.replace("(step)", "(step).take(9)"), [Insert("map1", "cache", {})]
    ops = [op(text, kind, f".{kind}(", id=f"{kind}{n}") for n in range(2) for kind in KINDS]
    assert "by this call" in refused(text, chained(*ops), *caches)


@pytest.mark.parametrize(
    ("epochs", "rounds", "written"), [(5, None, False), (5, 1, True), (1, 1, False), (5, 3, False)]
)
def test_a_caller_in_a_loop_fills_a_cache_for_nothing_where_a_fit_keeps_its_own(
    epochs: int, rounds: int | None, written: bool
) -> None:
    text = f"{FACTORY}model.fit(data(True))\nfor part in parts:\n    model.predict(data(part))\n"
    session = session_of(text, op(text, "map"), keras={"epochs": epochs})
    loop = replace(session.loops[0], planned_rounds=rounds)
    session = session.but(loops=[loop], run=make_run())
    made, _ = make_patch(session, [Edit("cache", "a cache", CACHE)], lambda _: text.encode())
    assert (made.left_out == []) is written


FOLD = f"{FACTORY}for fold in folds:\n    train = data(fold)\n    model().fit(train)\n"
FUNCTION = f"{FACTORY}def fold(n):\n    train = data(n)\n    model().fit(train)\n"
FUNCTION += "for n in range(5):\n    fold(n)\n"
PARTS = FOLD.replace("    train =", "    for fold in parts:\n        train =")


@pytest.mark.parametrize(
    ("text", "epochs", "rounds", "anew"),
    [
        (FOLD, 5, 5, True),
        (FOLD, 5, None, True),
        (FUNCTION, 5, 5, True),
        (FOLD.replace("data(fold)", "data(7)"), 5, 5, False),
        (FOLD, 1, 5, None),
        (PARTS, 5, 5, None),
        (f"{FOLD}for fold in folds:\n    model().evaluate(data(fold))\n", 5, 5, None),
    ],
)
def test_data_that_a_fold_makes_is_cached_for_the_epochs_of_its_fit(
    text: str, epochs: int, rounds: int | None, anew: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(text, op(text, "map"), keras={"epochs": epochs})
    loop = replace(session.loops[0], planned_rounds=rounds)
    session = session.but(loops=[loop], run=make_run())
    made, _ = make_patch(session, [Edit("cache", "a cache", CACHE)], lambda _: text.encode())
    assert (made.left_out == []) is (anew is not None)
    monkeypatch.setattr(workspace, "current_file", lambda _: text.encode())
    if anew is not None:
        assert workspace.made_in_a_loop(session, "map") is anew


def test_a_cache_in_a_factory_is_one_of_the_evaluation_too() -> None:
    text = f"{FACTORY}model.fit(data(True).batch(8), validation_data=data(False).batch(8))\n"
    session = session_of(text, op(text, "map"), keras={"epochs": 5})
    ops = [op(text, "map", "map(", id="of_it"), op(text, "batch", "fit(", id="batch")]
    validation = make_loop(
        id="loop_1", role="validation", pipeline=make_pipeline(ops=chained(*ops))
    )
    session = session.but(loops=[*session.loops, validation])
    edits = [
        Edit("cache", "a cache", CACHE),
        Edit("evaluation", "a cache", (Insert("batch", "cache", {}),), loop_id="loop_1"),
    ]
    made, contents = make_patch(session, edits, lambda _: text.encode())
    assert (made.edits, made.left_out) == (["cache", "evaluation"], [])
    [after] = contents.values()
    assert after.decode() == text.replace(".map(f)", ".map(f).cache()")
