"""Functions that call Python for stacks of elements, written into the user's file."""

from __future__ import annotations

import ast

import pytest

from pipediag.patching.making import make_patch
from pipediag.session.edits import IN_PROCESSES, Edit, Move, Replace
from pipediag.session.pipeline import Operation
from tests.factories import make_loop
from tests.patching.scripts import SCRIPT, line_of, op, patch, patched, refused, session_of
from tests.records import make_function

HEAD = "import numpy as np\nimport tensorflow as tf\n\nDATA = tf.data.Dataset\n"
FIT = "ds = ds.batch(8)\nmodel.fit(ds)\n"
CHUNKS = Replace("from_generator", "in_chunks", {"elements": 64})


def script(call: str, head: str = HEAD) -> str:
    return f"{head}\ndef rows():\n    yield 1\n\n\nds = {call}\n{FIT}"


def after(text: str) -> str:
    return patched(text, [op(text, "from_generator")], CHUNKS)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            "DATA.from_generator(rows, output_signature=sig)",
            "in_chunks(rows, output_signature=sig)",
        ),
        (
            "DATA.from_generator(rows, tf.int64, ())",
            "in_chunks(rows, DATA.from_generator(rows, tf.int64, ()).element_spec)",
        ),
        (
            "DATA.from_generator(self.rows, tf.int64, args=(path,))",
            "in_chunks(lambda args=(path,): self.rows(*[tf.convert_to_tensor(each).numpy() "
            "for each in args]), "
            "DATA.from_generator(self.rows, tf.int64, args=(path,)).element_spec)",
        ),
        (
            "DATA.from_generator(rows, tf.int64, args=())",
            "in_chunks(rows, DATA.from_generator(rows, tf.int64, args=()).element_spec)",
        ),
        (
            "DATA.from_generator(generator=rows, output_signature=sig).shuffle(9)",
            "in_chunks(generator=rows, output_signature=sig).shuffle(9)",
        ),
    ],
)
def test_the_function_is_called_in_place_of_from_generator(call: str, expected: str) -> None:
    text = after(script(call))

    assert f"ds = {expected}\n" in text
    module = ast.parse(text)
    assert [n.name for n in module.body if isinstance(n, ast.FunctionDef)] == ["in_chunks", "rows"]
    assert text.count("import itertools\n") == 1
    assert text.count("import numpy as np\n") == 1


def test_names_that_the_file_uses_are_left_alone() -> None:
    call = "DATA.from_generator(rows, output_signature=in_chunks)"

    assert "ds = in_chunks_2(rows, output_signature=in_chunks)\n" in after(script(call))


@pytest.mark.parametrize(
    ("args", "uses", "kept"),
    [
        ("[path]", "ds = files.interleave(make)\nfirst = make('a')\n", False),
        ("[path]", "ds = make('a')\n", True),
        ("[3]", "ds = files.interleave(make)\nfirst = make('a')\n", True),
    ],
)
def test_arguments_that_callers_hand_on_are_those_of_one_measured_call(
    args: str, uses: str, kept: bool
) -> None:
    """A path that `interleave` gives is a symbolic tensor."""
    call = f"DATA.from_generator(rows, args={args}, output_signature=sig)"
    text = f"{HEAD}\ndef make(path):\n    return {call}\n\n\n{uses}{FIT}"
    if kept:
        assert "in_chunks(lambda args=" in after(text)
    else:
        refused(text, [op(text, "from_generator")], CHUNKS)


@pytest.mark.parametrize(
    ("call", "head"),
    [
        ("DATA.from_generator(rows, output_signature=sig, args=(next(n),))", HEAD),
        ("DATA.from_generator(lambda n: rows(n), output_signature=sig, args=(3,))", HEAD),
        ("DATA.from_generator(*given)", HEAD),
        ("DATA.from_generator(Rows('x'), tf.int64)", HEAD),
        ("DATA.from_generator(rows, output_signature=sig)", HEAD.replace("np", "n") + "np = 3\n"),
        ("DATA.from_generator(rows, output_signature=sig)", "DATA = data()\n"),
    ],
)
def test_what_can_not_be_written_is_refused(call: str, head: str) -> None:
    text = script(call, head)

    assert refused(text, [op(text, "from_generator")], CHUNKS)


LOAD = """\
def parse(line):
    return json.loads(line.numpy())


def load(line):
    ids, y, z = tf.py_function(parse, [line], TYPES)
    ids.set_shape([20])
    y.set_shape(())
    z.set_shape(shape=SHAPE)
    return ids, tf.ensure_shape(y, tf.TensorShape([])), tf.ensure_shape(z, (3, W))


"""
READ = "ds = tf.data.TextLineDataset(files).map(load).shuffle(99).batch(8)\nmodel.fit(ds)\n"
PADDED = READ.replace(".batch", ".padded_batch")
ROWS = Move("map", "batch")


def mapped(text: str) -> list[Operation]:
    line = line_of(text, "def load") if "def load" in text else 1
    python = make_function(file=SCRIPT, line=line, stateful=True, graph_ops={"EagerPyFunc": 1})
    batch = "padded_batch" if ".padded_batch(8)" in text else "batch"
    return [op(text, "map", ".map(", function=python), op(text, batch, f".{batch}(8)", id="batch")]


@pytest.mark.parametrize("function", ["load", "lambda line: load(line)"])
def test_python_of_a_map_behind_its_batch_is_called_for_each_row(function: str) -> None:
    text = HEAD + LOAD + READ.replace("load", function)
    changed = patched(text, mapped(text), ROWS)

    assert "tf.py_function(for_each_row(parse), [line], TYPES)" in changed
    assert "ids.set_shape([None, 20])" in changed
    assert "y.set_shape((None,))" in changed
    assert "z.set_shape(shape=[None, *SHAPE])" in changed
    assert "tf.ensure_shape(y, tf.TensorShape([None])), tf.ensure_shape(z, (None, 3, W))" in changed
    assert f".shuffle(99).batch(8).map({function})" in changed
    assert changed.count("def for_each_row(") == 1


def test_python_in_a_lambda_is_called_for_each_row() -> None:
    call = "lambda s: tf.numpy_function(func=parse, inp=[s], Tout=tf.int64)"
    text = HEAD + READ.replace("load", call)

    assert f".batch(8).map({call.replace('parse', 'for_each_row(parse)')})" in patched(
        text, mapped(text), ROWS
    )


@pytest.mark.parametrize(
    ("made", "right"),
    [
        ("for ds in [make(files), make(more)]:\n    model.fit(ds)\n", True),
        ("for epoch in range(9):\n    model.fit(make(files))\n", False),
        ("def fit(x):\n    model.fit(make(x))\n\nfor part in parts:\n    fit(part)\n", False),
    ],
)
def test_a_loop_that_makes_the_pipeline_anew_would_start_processes_without_end(
    made: str, right: bool
) -> None:
    make = "def make(x):\n    return tf.data.TextLineDataset(x).map(load).batch(8)\n\n\n"
    text = HEAD + LOAD.replace("py_f", "numpy_f") + make + made
    changed, written = patch(text, mapped(text), Replace("map", IN_PROCESSES, {"processes": 2}))
    assert (changed.diff is not None) == right
    assert ("numpy_function(in_processes(parse, 2), [line], TYPES)" in written) == right


READER = """\
class Reader:
    def __call__(self, line):
        return tf.numpy_function(self.parse, [line], TYPES)

    def rows(self, files):
        return tf.data.TextLineDataset(files).map(self).shuffle(99).batch(8)


"""


def test_python_of_an_object_that_maps_stays_as_it_is() -> None:
    text = f"{HEAD}{READER}ds = Reader().rows(files)\nmodel.fit(ds)\n"
    line = line_of(text, "def __call__")
    python = make_function(file=SCRIPT, line=line, stateful=True, graph_ops={"PyFunc": 1})
    ops = [op(text, "map", ".map(self)", function=python), op(text, "batch", ".batch(8)")]
    refused(text, ops, ROWS)


@pytest.mark.parametrize("batch", ["batch", "padded_batch"])
def test_another_map_of_the_function_moves_behind_its_batch_too(batch: str) -> None:
    read = READ.replace(".batch", f".{batch}")
    text = HEAD + LOAD + read + "val = tf.data.TextLineDataset(rest).map(load)\n"
    text += f"val = val.{batch}(9)\n"
    changed = patched(text, mapped(HEAD + LOAD + read), ROWS)

    assert f".shuffle(99).{batch}(8).map(load)\n" in changed
    assert f"val = tf.data.TextLineDataset(rest)\nval = val.{batch}(9).map(load)\n" in changed


@pytest.mark.parametrize(
    "text",
    [
        HEAD + LOAD + READ + "other = other.map(load).cache().batch(3)\n",
        HEAD + LOAD + READ + "other = [load(line) for line in lines]\n",
        HEAD + LOAD + READ + "other = other.map(load).padded_batch(3)\n",
        HEAD + LOAD + PADDED + "other = other.map(load).padded_batch(3, padded_shapes=([9], []))\n",
        HEAD + LOAD.replace("SHAPE", "shape_of(3)") + READ,
        HEAD + READ.replace("load", "imported"),
        HEAD + LOAD.replace("parse, [line], TYPES", "*given") + READ,
        LOAD + READ,
    ],
    ids=["cached", "called", "padded", "shapes", "shape", "elsewhere", "stars", "no import"],
)
def test_python_that_can_not_be_called_for_rows_is_refused(text: str) -> None:
    ops = mapped(text.split("other =", maxsplit=1)[0])

    assert refused(text, ops, ROWS)


@pytest.mark.parametrize(("train", "right"), [("data.files()", True), ("ds.map(data.load)", False)])
def test_python_of_a_function_that_another_file_uses_is_refused(train: str, right: bool) -> None:
    text = HEAD + LOAD + READ
    files = {SCRIPT: text, "/work/main.py": f"import train as data\n\n{train}\n", "train.py": ""}
    session = session_of(text, *mapped(text)).but(loops=[make_loop(file="/work/main.py")])
    edit = Edit("e", "an edit", (ROWS,))
    made, _ = make_patch(session, [edit], lambda path: files[path].encode())

    assert (made.diff is not None) == right
