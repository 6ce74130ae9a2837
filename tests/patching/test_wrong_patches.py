"""Scripts for which a patch would compile and be wrong: each edit is refused, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.patching.making import make_patch
from pipediag.session.edits import (
    Change,
    Edit,
    Insert,
    Move,
    Remove,
    SetModel,
    SetOptions,
    SetParameters,
)
from pipediag.session.findings import Patch
from pipediag.session.model import Script
from tests.patching.scripts import SCRIPT, op, patch, session_of

HEAD = "import tensorflow as tf\n"
STEPS = SetModel({"steps_per_execution": 16})
ROW_WISE = SetModel({"optimizer": "row_wise"})
LARGER = SetParameters("batch", {"batch_size": 128})
POOL = SetOptions({"threading.private_threadpool_size": 16})


def refused(text: str, change: Change, *kinds: str, **keras: Any) -> str:
    """Why the change can't be written into the script; its operations read from one another."""
    whole = HEAD + text
    ops = [op(whole, kind, f".{kind}(") for kind in kinds]
    made, after = patch(whole, ops, change, keras=keras)
    assert after == whole
    (left,) = made.left_out
    return left.reason


REPEAT = Insert("batch", "repeat")
ENDLESS = "train = read(x).batch(32)\nmodel.fit(train)\n"
EVALUATED = (
    "train = read(x).batch(32)\nmodel.fit(train, steps_per_epoch=9)\nmodel.evaluate(train)\n"
)


@pytest.mark.parametrize(
    ("text", "reason"), [(ENDLESS, "never end"), (EVALUATED, "never reach its end")]
)
def test_nothing_is_repeated_without_end(text: str, reason: str) -> None:
    """What a session calls `steps_per_epoch` is what Keras works with, whoever has said so."""
    assert reason in refused(text, REPEAT, "batch", steps_per_epoch=100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "o = tf.data.Options()\no.threading.private_threadpool_size = 1\n"
            "val = val.with_options(o)\nds = read(x).batch(3)\nmodel.fit(ds)\n",
            "perhaps for another pipeline",
        ),
        (
            "o = tf.data.Options()\nif debug:\n    o.threading.private_threadpool_size = 1\n"
            "ds = read(x).batch(3)\nds = ds.with_options(o)\nmodel.fit(ds)\n",
            "only in some cases",
        ),
        (
            "class C:\n    def __init__(self, n):\n"
            "        self.threading.private_threadpool_size = n\n\n\n"
            "ds = read(x).batch(3)\nmodel.fit(ds)\n",
            "perhaps for another pipeline",
        ),
    ],
)
def test_options_of_something_else_stay(text: str, reason: str) -> None:
    assert reason in refused(text, POOL, "batch")


@pytest.mark.parametrize("kind", ["take", "skip", "shard"])
def test_batches_that_are_counted_keep_their_size(kind: str) -> None:
    text = f"ds = read(x).batch(8)\nval = ds.{kind}(10)\nmodel.fit(ds)\n"
    assert f"The `{kind}` after it counts" in refused(text, LARGER, "batch", kind)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "def make(x, size):\n    return read(x).batch(size)\n\n\n"
            "ds = make(x, 8)\nmodel.fit(ds)\n",
            "parameter",
        ),
        ("ds = read(x).batch(8)\nmodel.fit(ds, **more)\n", "counts batches"),
    ],
)
def test_a_size_that_says_more_stays(text: str, reason: str) -> None:
    assert reason in refused(text, LARGER, "batch")


@pytest.mark.parametrize(
    "text",
    [
        "make = lambda x: read(x).batch(8)\na, b = make(x), make(y)\n",
        "def make(x):\n    return read(x).batch(8)\n\n\na, b = map(make, (x, y))\n",
        "def make(x):\n    return read(x).batch(8)\n\n\nbuild = make\na, b = build(x), build(y)\n",
        "class D:\n    def data(self):\n        return read(x).batch(8)\n\n"
        "    def train(self):\n        for epoch in range(9):\n"
        "            for b in self.data():\n                step(b)\n",
    ],
)
def test_what_may_be_made_several_times_is_left_alone(text: str) -> None:
    refused(text, Insert("batch", "cache"), "batch")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "class GAN(keras.Model):\n    def compile(self, d):\n        super().compile()\n\n\n"
            "gan.compile(d=1)\ngan.fit(ds)\n",
            "its own `compile`",
        ),
        (
            'def build(n):\n    m = make(n)\n    m.compile("sgd")\n    return m\n\n\n'
            "small = build(8)\nlarge = build(800)\nlarge.fit(ds)\n",
            "used in 2 places",
        ),
    ],
)
def test_a_compile_of_its_own_or_of_several_models_is_left_alone(text: str, reason: str) -> None:
    lines = (HEAD + text).split("\n")
    line = next(n for n, each in enumerate(lines, 1) if ".compile(" in each)
    assert reason in refused(text, STEPS, compile_line=line)


def test_a_model_that_was_compiled_before_anything_was_recorded_is_left_alone() -> None:
    assert "not recorded" in refused("model.fit(ds)\n", STEPS)


BUILDER = (
    'import keras\n\n\ndef build():\n    m = keras.Model()\n    m.compile("adam")\n    return m\n'
)
TRAINS = "from model import build\nmodel = build()\nmodel.fit(ds)\n"


@pytest.mark.parametrize(
    ("builder", "script", "right"),
    [
        (BUILDER, TRAINS, True),
        (BUILDER, TRAINS + "other = build()\n", False),
        (BUILDER.replace("def build", "def compile"), TRAINS, False),
    ],
)
def test_a_model_is_compiled_otherwise_where_it_was_compiled(
    builder: str, script: str, right: bool
) -> None:
    keras = {"compile_file": "/work/model.py", "compile_line": 6}
    session = session_of(script, keras=keras).model_copy(
        update={"script": Script(path=SCRIPT, args=[], outcome="stopped")}
    )
    contents = {SCRIPT: script.encode(), "/work/model.py": builder.encode()}
    made, after = make_patch(session, [Edit("edit", "an edit", (STEPS,))], contents.__getitem__)
    assert (made.diff is not None) == right
    if right:
        assert b'm.compile("adam", steps_per_execution=16)' in after["/work/model.py"]


def test_an_optimizer_that_callers_give_is_theirs() -> None:
    text = (
        "def train(opt):\n    model.compile(optimizer=opt)\n    model.fit(ds)\n\n\n"
        "opt = Adam(1e-3)\ntrain(Adam(1e-5))\n"
    )
    assert "parameter" in refused(text, ROW_WISE, optimizer="Adam")


def test_an_argument_that_is_given_by_its_place_is_not_given_twice() -> None:
    text = 'import tensorflow as tf\nmodel.compile("adam", "mse", None, [], None, False, 4)\n'
    text += "model.fit(ds)\n"
    made, after = patch(text, [], STEPS)
    assert made.left_out == []
    assert 'model.compile("adam", "mse", None, [], None, False, 16)' in after


def test_the_first_of_two_calls_in_a_row_is_not_taken_for_both() -> None:
    """As AutoGraph converts the function, both are recorded in the line of the statement."""
    text = (
        "import tensorflow as tf\n\n\ndef rows(x):\n    return read(x).map(f) \\\n        .map(g)\n"
    )
    first = op(text, "map", ".map(f)", id="first")
    second = op(text, "map", ".map(f)", id="second")
    change = SetParameters("second", {"num_parallel_calls": 4})
    made, after = patch(text, [first, second], change)
    assert after == text
    assert "more than once" in made.left_out[0].reason


@pytest.mark.parametrize(
    "text",
    [
        "with scope():\n    ds = src.shuffle(9)\n    train = ds.map(f)\nmodel.evaluate(ds)\n",
        "class T:\n    def predict(self):\n        return ds\n\n\nds = src.shuffle(9)\n"
        "train = ds.map(f)\n",
    ],
)
def test_nothing_moves_that_other_code_reads(text: str) -> None:
    assert "Other code reads `ds`" in refused(text, Move("shuffle", "map"), "shuffle", "map")


def test_nothing_is_left_out_that_other_code_reads() -> None:
    text = "flat = rows.unbatch()\nn = flat.reduce(0, add)\ntrain = flat.batch(64)\n"
    assert "Other code also reads `flat`" in refused(text, Remove("unbatch"), "unbatch", "batch")


def test_comments_keep_their_calls() -> None:
    text = (
        "ds = (\n    src.map(f)  # parse\n    .unbatch()  # as shards hold 8\n    .batch(64)\n)\n"
    )
    assert "comment" in refused(text, Remove("unbatch"), "map", "unbatch", "batch")


MODULE = """import tensorflow as tf

def make(x, training):
    ds = read(x).map(parse)
    ds = ds.batch(8)
    if training:
        ds = ds.shuffle(9)
    return ds
"""
CALLED_ONCE = "import data\nfirst = data.make(x, True)\n"
CALLED_TWICE = "from package.data import make as m\nfirst = m(x, True)\nsecond = m(y, False)\n"


def of_a_module(script: str, change: Change, module: str = MODULE) -> Patch:
    ops = [op(module, kind, file="/work/data.py") for kind in ("map", "batch")]
    session = session_of(module, *ops).model_copy(
        update={"script": Script(path=SCRIPT, args=[], outcome="stopped")}
    )
    contents = {SCRIPT: script.encode(), "/work/data.py": module.encode()}
    made, _ = make_patch(session, [Edit("edit", "an edit", (change,))], contents.__getitem__)
    return made


@pytest.mark.parametrize(
    ("change", "right"),
    [
        (SetParameters("map", {"num_parallel_calls": -1}), True),
        (Insert("batch", "prefetch", {"buffer_size": 2}), True),
        (Insert("batch", "cache"), True),
        (Move("map", "batch"), True),
        (Insert("batch", "skip", {"count": 2}), False),
        (Insert("map", "unbatch"), False),
    ],
)
def test_what_is_right_for_all_callers_of_a_factory_in_a_module_is_written(
    change: Change, right: bool
) -> None:
    """What the callers choose between behind the place does not matter there."""
    made = of_a_module(CALLED_TWICE, change)
    assert (made.diff is not None) == right
    assert ["`make` is called in train.py:2 and train.py:3" in one for one in made.shared] == (
        [True] if right else []
    )
    assert of_a_module(CALLED_ONCE, change).diff is not None
    assert of_a_module(CALLED_ONCE, change).shared == []


def test_what_a_factory_chooses_before_the_place_matters() -> None:
    module = MODULE.replace("    ds = ds.batch(8)\n", "").replace(
        "    return ds\n", "    ds = ds.batch(8)\n    return ds\n"
    )
    assert of_a_module(CALLED_TWICE, Insert("batch", "cache"), module).diff is None
    assert of_a_module(CALLED_TWICE, Insert("map", "cache"), module).diff is not None
    assert of_a_module(CALLED_TWICE, Insert("batch", "prefetch"), module).diff is not None


def test_how_often_a_factory_that_is_handed_on_is_called_is_not_known() -> None:
    script = "import data\nbuild = data.make\n"
    (left,) = of_a_module(script, Insert("batch", "cache")).left_out
    assert "`make` may be called any number" in left.reason
    assert of_a_module(script, Insert("batch", "prefetch")).diff is not None


def test_another_function_of_the_same_name_is_no_caller() -> None:
    script = CALLED_ONCE + "def make(): pass\nmake()\nother.make()\n"
    assert of_a_module(script, Insert("batch", "skip", {"count": 2})).diff is not None


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_an_installed_package_is_not_changed(folder: str) -> None:
    path = f"/usr/lib/python3/{folder}/data.py"
    ops = [op(MODULE, kind, file=path) for kind in ("map", "batch")]
    edit = Edit("edit", "an edit", (Insert("batch", "prefetch", {"buffer_size": 2}),))
    made, _ = make_patch(session_of(MODULE, *ops), [edit], lambda _: MODULE.encode())
    assert made.diff is None
    (left,) = made.left_out
    assert "belongs to an installed package" in left.reason
    assert left.snippet
