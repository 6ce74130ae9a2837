"""Source that is written so that a change of it would not be safe: it stays, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.patching.making import make_patch
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Edit,
    Insert,
    Move,
    SetModel,
    SetOptions,
    SetParameters,
)
from pipediag.session.findings import Patch
from pipediag.session.model import Script
from pipediag.session.pipeline import Operation
from tests.patching.scripts import SCRIPT, op, patch, patched, refused, session_of

HEAD = "import tensorflow as tf\n"
CACHE = Insert("map", "cache", {})
PARALLEL = SetParameters("map", {"num_parallel_calls": AUTOTUNE})


def map_in(text: str, needle: str = ".map(") -> list[Operation]:
    return [op(text, "map", needle)]


MAKE = "def make(x):\n    return read(x).map(f)\n\n\n"
EPOCHS = "for epoch in range(9):\n"
CHANGING = (
    "    for b in make(epoch):\n        step(b)\n",
    "    settings['x'] = epoch\n    for b in make(settings):\n        step(b)\n",
    "    if epoch:\n        for b in make(files):\n            step(b)\n",
    "    random.shuffle(files)\n    for b in make(files):\n        step(b)\n",
    "    batches = iter(make(files))\n    step(next(batches))\n",
    "    ds = make(files)\n    ds = ds.take(epoch)\n",
    "    ds = make(files)\n    for b in ds:\n        step(b)\n    del ds\n",
)
NOT_MADE = (
    (
        "def run(x):\n    total = 0\n    for b in read(x).map(f):\n        total += step(b)\n"
        "    return total\n",
        "    loss = run(x)\n",
    ),
    (
        "def run(x):\n    ds = read(x).map(f)\n    score = model.evaluate(ds)\n    return score\n",
        "    a = run(x)\n",
    ),
    (
        "def batches(x):\n    for b in read(x).map(f):\n        yield b\n",
        "    for b in batches(x):\n        step(b)\n",
    ),
    (
        "def data(x):\n    part = random.sample(x, 9)\n    return read(part).map(f)\n",
        "    for b in data(x):\n        step(b)\n",
    ),
)
"""Functions that do more than to return a dataset."""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for f in fs:\n    ds = ds.map(f)\n", "in a loop"),
        ("made = [ds.map(f) for f in fs]\n", "comprehension"),
        (
            "def make(x):\n    if x:\n        y = x.map(f)\n    return y\n\n\nmake(x)\nmake(y)\n",
            "used in 2 places",
        ),
        (f"{MAKE}make(x)\nsources.flat_map(make)\n", "used in 2 places"),
        (f"{MAKE}make(x)\nwhile more():\n    make(y)\n", "in a loop"),
        (f"{MAKE}for x in y:\n    make(x)\n", "in a loop"),
        ("make = lambda x: read(x).map(f)\na, b = make(x), make(y)\n", "lambda"),
        (f"{MAKE}a, b = list(each(make, (x, y)))\n", "any number of times"),
        (f"{MAKE}build = make\na = build(x)\n", "any number of times"),
        (
            "class D:\n    def data(self):\n        return read(x).map(f)\n\n"
            "    def train(self):\n        for epoch in range(9):\n"
            "            self.epoch = epoch\n"
            "            for b in self.data():\n                step(b)\n",
            "in a loop",
        ),
        *((f"{MAKE}{EPOCHS}{body}", "in a loop") for body in CHANGING),
        *((f"{function}\n\n{EPOCHS}{body}", "in a loop") for function, body in NOT_MADE),
        (
            "def data():\n    return read(epoch).map(f)\n\n\n"
            f"{EPOCHS}    for b in data():\n        step(b)\n",
            "in a loop",
        ),
    ],
)
def test_a_pipeline_that_may_be_made_several_times_is_left_alone(text: str, reason: str) -> None:
    assert reason in refused(HEAD + text, map_in(HEAD + text), CACHE, keras={"epochs": 1})


def test_a_line_that_was_run_for_several_pipelines_is_left_alone() -> None:
    text = HEAD + "def make(files):\n    return read(files).map(f)\n\n\nds = make(x)\n"
    other = op(text, "map", id="of_validation", inside_function_of="another")
    twins = [op(text, "map", id="map"), other]
    assert "several pipelines" in refused(text, twins, CACHE)
    assert "num_parallel_calls" in patched(text, twins, PARALLEL)


def test_the_head_of_a_loop_is_not_in_the_loop() -> None:
    text = HEAD + "for batch in ds.map(f):\n    step(batch)\n"
    assert ".map(f).cache():" in patched(text, map_in(text), CACHE)


@pytest.mark.parametrize("run", ["app.run(main)", "fire.Fire(main)", "typer.run(main)"])
def test_what_runs_a_program_calls_its_function_once(run: str) -> None:
    text = f"{HEAD}{MAKE}def main(_):\n    model.fit(make(x))\n\n\n{run}\n"
    assert ".map(f).cache()" in patched(text, map_in(text), CACHE)
    looped = text.replace("    model.fit", "    for x in parts:\n        model.fit")
    assert "in a loop" in refused(looped, map_in(looped), CACHE, keras={"epochs": 1})
    other = text.replace(run, "pool.run(main)")
    assert "any number of times" in refused(other, map_in(other), CACHE)


LARGER = SetParameters("batch", {"batch_size": 32})
BEHIND = Move("shuffle", "map")
STEPS = SetModel({"steps_per_execution": 16})
ROW_WISE = SetModel({"optimizer": "row_wise"})
POOL = SetOptions({"threading.private_threadpool_size": 16})
KINDS = ("shuffle", "map", "unbatch", "batch", "take", "skip")
LEFT_ALONE: dict[str, tuple[str, Change, str]] = {
    "arguments by stars": ("ds = ds.map(f, **settings)\n", PARALLEL, "`**`"),
    "no python": ("ds = ds.map(f) oops\n", PARALLEL, "read as Python"),
    "names change meanwhile": ("n = 3\nds = ds.shuffle(n)\nn = 5\nds = ds.map(f)\n", BEHIND, "`n`"),
    "others read the elements": (
        "ds = ds.shuffle(9)\nfirst = next(iter(ds))\nds = ds.map(f)\n",
        BEHIND,
        "`ds`",
    ),
    "a condition gives the variable": (
        "ds = ds.shuffle(9)\nif small:\n    ds = other\nds = ds.map(f)\n",
        BEHIND,
        "more than one place",
    ),
    "a size that says more": (
        "BATCH = 8\nds = ds.batch(BATCH)\nsteps = count // BATCH\n",
        LARGER,
        "`BATCH`",
    ),
    "a count of batches": (
        "ds = ds.batch(8)\nmodel.fit(ds, steps_per_epoch=9)\n",
        LARGER,
        "steps_per_epoch",
    ),
    "a setting given elsewhere": (
        "m.compile('sgd')\nm.run_eagerly = True\nm.fit(ds)\n",
        SetModel({"run_eagerly": False}),
        "`run_eagerly`",
    ),
    "two models in one line": (
        "m.compile('sgd'); n.compile('adam')\nm.fit(ds)\n",
        SetModel({"jit_compile": True}),
        "2 times",
    ),
    "an optimizer made elsewhere": ("m.compile(make_optimizer())\nm.fit(ds)\n", ROW_WISE, "`Adam`"),
    "an optimizer that callers give": (
        "def train(opt):\n    model.compile(optimizer=opt)\n    model.fit(ds)\n\n\n"
        "opt = Adam(1e-3)\ntrain(Adam(1e-5))\n",
        ROW_WISE,
        "once",
    ),
    "a size that callers give": (
        "def make(x, size):\n    return read(x).batch(size)\n\n\nds = make(x, 8)\nmodel.fit(ds)\n",
        LARGER,
        "alone",
    ),
    "counts that are not seen": (
        "ds = read(x).batch(8)\nmodel.fit(ds, **more)\n",
        LARGER,
        "counts batches",
    ),
    "a skip of batches": (
        "ds = read(x).batch(8)\nval = ds.skip(10)\nmodel.fit(ds)\n",
        LARGER,
        "The `skip` after it counts",
    ),
    "options of another pipeline": (
        "o = tf.data.Options()\no.threading.private_threadpool_size = 1\n"
        "val = val.with_options(o)\nds = read(x).batch(3)\nmodel.fit(ds)\n",
        POOL,
        "for another pipeline",
    ),
    "options of a part of the pipeline": (
        "o = tf.data.Options()\no.threading.private_threadpool_size = 1\n"
        "ds = read(x).batch(3)\nfirst = ds.prefetch(1).with_options(o)\nmodel.fit(ds)\n",
        POOL,
        "for another pipeline",
    ),
    "options in some cases": (
        "o = tf.data.Options()\nif debug:\n    o.threading.private_threadpool_size = 1\n"
        "ds = read(x).batch(3)\nds = ds.with_options(o)\nmodel.fit(ds)\n",
        POOL,
        "in some cases",
    ),
    "an evaluation reads the elements": (
        "with scope():\n    ds = src.shuffle(9)\n    train = ds.map(f)\nmodel.evaluate(ds)\n",
        BEHIND,
        "Other code reads `ds`",
    ),
    "a method reads the elements": (
        "class T:\n    def predict(self):\n        return ds\n\n\nds = src.shuffle(9)\n"
        "train = ds.map(f)\n",
        BEHIND,
        "Other code reads `ds`",
    ),
    "a comment in the chain": (
        "ds = src\nds = (\n    ds  # of them\n    .shuffle(9)\n)\nout = ds.take(9).map(f)\n",
        BEHIND,
        "comment",
    ),
    "a compile of its own": (
        "class GAN(keras.Model):\n    def compile(self, d):\n        super().compile()\n\n\n"
        "gan.fit(ds)\n",
        STEPS,
        "its own `compile`",
    ),
    "a model of several": (
        'def build(n):\n    m = make(n)\n    m.compile("sgd")\n    return m\n\n\n'
        "small = build(8)\nlarge = build(800)\nlarge.fit(ds)\n",
        STEPS,
        "used in 2 places",
    ),
    "a model compiled before anything was recorded": ("model.fit(ds)\n", STEPS, "not recorded"),
}


@pytest.mark.parametrize(("text", "change", "reason"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_not_safe_is_left_alone(text: str, change: Change, reason: str) -> None:
    whole = HEAD + text
    kinds = sorted((kind for kind in KINDS if f".{kind}(" in text), key=text.index)
    ops = [op(whole, kind, f".{kind}(") for kind in kinds]
    keras = {"optimizer": "Adam", "steps_per_epoch": 100}
    options = dict.fromkeys(POOL.options, 1)  # of the pipeline, which may have them from elsewhere
    assert reason in refused(whole, ops, change, keras=keras, options=options)


def test_a_line_that_calls_something_else_is_none_that_was_measured() -> None:
    text = HEAD + "ds = build(f)\n"
    assert "built elsewhere" in refused(text, map_in(text, "build"), PARALLEL)


SECOND = SetParameters("second", {"num_parallel_calls": 4})


def two_in(text: str, needle: str) -> list[Operation]:
    return [op(text, "map", needle, id=id) for id in ("first", "second")]


def test_two_calls_of_a_chain_are_told_apart_by_their_order() -> None:
    text = HEAD + "ds = ds.map(f).batch(2).map(g)\n"
    after = patched(text, two_in(text, ".map("), SECOND)
    assert ".map(f).batch(2).map(g, num_parallel_calls=4)" in after


def test_two_calls_that_are_no_chain_are_not_told_apart() -> None:
    text = HEAD + "ds = join(a.map(f), b.map(g))\n"
    assert "more than once" in refused(text, two_in(text, "join"), SECOND)


def test_an_operation_of_the_framework_is_not_in_the_source() -> None:
    text = HEAD + "model.fit(x, y)\n"
    made = [op(text, "batch", ".fit(", made_by_framework=True)]
    assert "framework" in refused(text, made, SetParameters("batch", {"batch_size": 64}))


def test_a_call_moves_along_variables_that_are_read_once() -> None:
    text = HEAD + "a = src.shuffle(9).take(2)\nb = a.map(f)\n"
    both = [op(text, "shuffle"), op(text, "map")]
    after = patched(text, both, Move("shuffle", "map"))
    assert after == HEAD + "a = src.take(2)\nb = a.map(f).shuffle(9)\n"


def test_two_models_are_told_apart_by_the_line_that_was_recorded() -> None:
    text = "a.compile('sgd')\nb.compile('sgd')\nb.fit(ds)\n"
    change = SetModel({"jit_compile": True})
    assert "b.compile('sgd', jit_compile=True)" in patched(text, [], change)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_what_is_not_changed_stays_byte_for_byte(newline: str, bom: str) -> None:
    lines = [
        "import tensorflow as tf",
        "def make(ds):",
        "\tds = ds.map(f)\t# größer  ",
        '\treturn ds, """a',
        '  b"""',
        "ds = make(x)",
    ]
    text = newline.join(lines)
    content = (bom + text).encode()
    made, after = patch(text, map_in(text), CACHE, content=content)
    assert after == bom + newline.join([*lines[:3], "\tds = ds.cache()", *lines[3:]])
    assert made.diff is not None
    assert f"+\tds = ds.cache(){newline}" in made.diff


def test_a_file_without_a_last_line_end_gets_none_within_a_line() -> None:
    text = HEAD + "ds = ds.map(f)"
    made, after = patch(text, map_in(text), CACHE)
    assert after == HEAD + "ds = ds.map(f)\nds = ds.cache()"
    assert made.diff.count("\\ No newline at end of file\n") == 2


def test_a_file_in_another_encoding_is_left_alone() -> None:
    text = "# -*- coding: latin-1 -*-\nimport tensorflow as tf\nds = ds.map(f)  # größer\n"
    made, _ = make_patch(
        session_of(text, *map_in(text)),
        [Edit("edit", "", (CACHE,))],
        lambda _: text.encode("latin-1"),
    )
    assert "UTF-8" in made.left_out[0].reason


BUILDER = (
    'import keras\n\n\ndef build():\n    m = keras.Model()\n    m.compile("adam")\n    return m\n'
)
TRAINS = "from model import build\nmodel = build()\nmodel.fit(ds)\n"


@pytest.mark.parametrize(
    ("builder", "script", "right"),
    [
        (BUILDER, TRAINS, True),
        (BUILDER, TRAINS + "other = build()\n", False),
        (BUILDER + "\nbuild()\n", TRAINS, False),
        (BUILDER + "\nif __name__ == '__main__':\n    build()\n", TRAINS, True),
        (BUILDER + "\nif __name__ != '__main__':\n    build()\n", TRAINS, False),
        (BUILDER.replace("def build", "def compile"), TRAINS, False),
    ],
)
def test_a_model_is_compiled_otherwise_where_it_was_compiled(
    builder: str, script: str, right: bool
) -> None:
    keras = {"compile_file": "/work/model.py", "compile_line": 6}
    session = session_of(script, keras=keras).but(
        script=Script(path=SCRIPT, args=[], outcome="stopped")
    )
    contents = {SCRIPT: script.encode(), "/work/model.py": builder.encode()}
    made, after = make_patch(session, [Edit("edit", "an edit", (STEPS,))], contents.__getitem__)
    assert (made.diff is not None) == right
    if right:
        assert b'm.compile("adam", steps_per_execution=16)' in after["/work/model.py"]


def test_the_first_of_two_calls_in_a_row_is_not_taken_for_both() -> None:
    """As AutoGraph converts the function, both are recorded in the line of the statement."""
    text = (
        "import tensorflow as tf\n\n\ndef rows(x):\n    return read(x).map(f) \\\n        .map(g)\n"
    )
    assert "more than once" in refused(text, two_in(text, ".map(f)"), SECOND)


MODULE = """import tensorflow as tf

def make(x, training):
    ds = read(x).map(parse)
    ds = ds.batch(8)
    if training:
        ds = ds.shuffle(9)
    return ds
"""
CALLED_ONCE = "import data\nfirst = data.make(x, True)\n"


def of_a_module(script: str, change: Change, module: str = MODULE, **others: str) -> Patch:
    ops = [op(module, kind, file="/work/data.py") for kind in ("map", "batch")]
    session = session_of(module, *ops).but(script=Script(path=SCRIPT, args=[], outcome="stopped"))
    contents = {SCRIPT: script.encode(), "/work/data.py": module.encode()}
    contents |= {f"/work/{name}.py": text.encode() for name, text in others.items()}
    made, _ = make_patch(session, [Edit("edit", "an edit", (change,))], contents.__getitem__)
    return made


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        ("return make(a, False), make(b, True)", "used in 2 places"),
        ("return [make(part, True) for part in parts]", "in a comprehension"),
        ("return registry(a, True)", "The code that calls `make` was not found"),
        ("return make(a, True)", None),
    ],
)
def test_callers_in_a_file_that_is_only_imported_count(
    calls: str, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "is_file", lambda place: str(place) == "/work/mid.py")
    script = "import mid\nmid.datasets()\n"
    mid = f"from data import make\n\ndef datasets():\n    {calls}\n"
    module = MODULE.replace("parse", "training")
    made = of_a_module(script, Insert("batch", "cache"), module, mid=mid)
    assert [reason in one.reason for one in made.left_out] == ([] if reason is None else [True])


def test_how_often_a_factory_that_is_handed_on_is_called_is_not_known() -> None:
    script = "import data\nbuild = data.make\n"
    (left,) = of_a_module(script, Insert("batch", "cache")).left_out
    assert "`make` may be called any number" in left.reason
    parallel = SetParameters("map", {"num_parallel_calls": -1})
    assert of_a_module(script, parallel).diff is not None


def test_another_function_of_the_same_name_is_no_caller() -> None:
    script = CALLED_ONCE + "def make(): pass\nmake()\nother.make()\n"
    assert of_a_module(script, SetParameters("batch", {"batch_size": 2})).diff is not None


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_an_installed_package_is_not_changed(folder: str) -> None:
    path = f"/usr/lib/python3/{folder}/data.py"
    ops = [op(MODULE, kind, file=path) for kind in ("map", "batch")]
    edit = Edit("edit", "an edit", (Insert("batch", "cache"),))
    made, _ = make_patch(session_of(MODULE, *ops), [edit], lambda _: MODULE.encode())
    assert made.diff is None
    (left,) = made.left_out
    assert "belongs to an installed package" in left.reason
    assert left.snippet
