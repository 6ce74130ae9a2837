"""Source that is written so that a change of it would not be safe: it stays, and says why."""

from __future__ import annotations

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
from pipediag.session.pipeline import Operation
from tests.patching.scripts import SCRIPT, op, patch, patched, refused, session_of

HEAD = "import tensorflow as tf\n"
CACHE = Insert("map", "cache", {})
PARALLEL = SetParameters("map", {"num_parallel_calls": AUTOTUNE})


def map_in(text: str, needle: str = ".map(") -> list[Operation]:
    return [op(text, "map", needle)]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for f in fs:\n    ds = ds.map(f)\n", "in a loop"),
        ("while more():\n    ds = ds.map(f)\n", "in a loop"),
        ("made = [ds.map(f) for f in fs]\n", "comprehension"),
        (
            "def make(x):\n    if x:\n        y = x.map(f)\n    return y\n\n\nmake(x)\nmake(y)\n",
            "used in 2 places",
        ),
        (
            "def make(x):\n    return read(x).map(f)\n\n\nmake(x)\nsources.flat_map(make)\n",
            "used in 2 places",
        ),
        (
            "def make(x):\n    return read(x).map(f)\n\n\nmake(x)\nwhile more():\n    make(y)\n",
            "in a loop",
        ),
        (
            "def make(files):\n    return read(files).map(f)\n\n\nfor x in y:\n    make(x)\n",
            "in a loop",
        ),
    ],
)
def test_a_pipeline_that_may_be_made_several_times_is_left_alone(text: str, reason: str) -> None:
    assert reason in refused(HEAD + text, map_in(HEAD + text), CACHE)


def test_a_line_that_was_run_for_several_pipelines_is_left_alone() -> None:
    text = HEAD + "def make(files):\n    return read(files).map(f)\n"
    other = op(text, "map", id="of_validation", inside_function_of="another")
    twins = [op(text, "map", id="map"), other]
    assert "several pipelines" in refused(text, twins, CACHE)
    assert "num_parallel_calls" in patched(text, twins, PARALLEL)


def test_the_head_of_a_loop_is_not_in_the_loop() -> None:
    text = HEAD + "for batch in ds.map(f):\n    step(batch)\n"
    assert ".map(f).cache():" in patched(text, map_in(text), CACHE)


LARGER = SetParameters("batch", {"batch_size": 32})
BEHIND = Move("shuffle", "map")
LEFT_ALONE: dict[str, tuple[str, Change, str]] = {
    "arguments by stars": ("ds = ds.map(f, **settings)\n", PARALLEL, "`**`"),
    "no python": ("ds = ds.map(f) oops\n", PARALLEL, "read as Python"),
    "names change meanwhile": (
        "n = 3\nds = ds.shuffle(n)\nn = 5\nds = ds.map(f)\n",
        BEHIND,
        "`n`",
    ),
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
    "an optimizer made elsewhere": (
        "m.compile(make_optimizer())\nm.fit(ds)\n",
        SetModel({"optimizer": "row_wise"}),
        "`Adam`",
    ),
}


@pytest.mark.parametrize(("text", "change", "reason"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_what_is_not_safe_is_left_alone(text: str, change: Change, reason: str) -> None:
    kinds = [kind for kind in ("shuffle", "map", "batch") if f"ds.{kind}(" in text]
    assert reason in refused(HEAD + text, [op(HEAD + text, kind) for kind in kinds], change)


def test_a_line_that_calls_something_else_is_none_that_was_measured() -> None:
    text = HEAD + "ds = build(f)\n"
    assert "built elsewhere" in refused(text, map_in(text, "build"), PARALLEL)


def test_two_calls_of_a_chain_are_told_apart_by_their_order() -> None:
    text = HEAD + "ds = ds.map(f).batch(2).map(g)\n"
    maps = [op(text, "map", ".map(", id=id) for id in ("first", "second")]
    change = SetParameters("second", {"num_parallel_calls": 4})
    assert ".map(f).batch(2).map(g, num_parallel_calls=4)" in patched(text, maps, change)


def test_two_calls_that_are_no_chain_are_not_told_apart() -> None:
    text = HEAD + "ds = join(a.map(f), b.map(g))\n"
    maps = [op(text, "map", "join", id=id) for id in ("first", "second")]
    change = SetParameters("second", {"num_parallel_calls": 4})
    assert "more than once" in refused(text, maps, change)


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


def test_options_do_not_take_a_name_that_is_used() -> None:
    text = HEAD + "options = parse()\nds = ds.batch(3)\n"
    after = patched(text, [op(text, "batch")], SetOptions({"deterministic": False}))
    assert "options_2.deterministic = False\nds = ds.with_options(options_2)" in after


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_what_is_not_changed_stays_byte_for_byte(newline: str, bom: str) -> None:
    lines = [
        "import tensorflow as tf",
        "def make(ds):",
        "\tds = ds.map(f)\t# größer  ",
        '\treturn ds, """a',
        '  b"""',
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
    assert made.diff is not None
    assert made.diff.count("\\ No newline at end of file\n") == 2


def test_a_file_in_another_encoding_keeps_it() -> None:
    text = "# -*- coding: latin-1 -*-\nimport tensorflow as tf\nds = ds.map(f)  # größer\n"
    source = op(text, "map")
    _, contents = make_patch(
        session_of(text, source), [Edit("edit", "", (CACHE,))], lambda _: text.encode("latin-1")
    )
    assert contents[SCRIPT].decode("latin-1") == text + "ds = ds.cache()\n"
