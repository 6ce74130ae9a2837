"""A shuffle in the caller moves into the function that maps, for the caller alone."""

from __future__ import annotations

import pytest

from pipediag.session.edits import Change, Insert, Move
from pipediag.session.pipeline import Operation
from tests.patching.scripts import op, patch, refused

HEAD = "import tensorflow as tf\n\n"
CHAINED = """def batches(rows):
    return rows.map(parse).batch(8)

train = batches(tf.data.TFRecordDataset(files).shuffle(9))
valid = batches(tf.data.TFRecordDataset(others))
"""
METHODS = """class Data:
    def train(self):
        rows = tf.data.TextLineDataset(self.files)
        rows = rows.shuffle(SIZE, seed=3)
        return self.batches(rows, 8)

    def valid(self):
        return self.batches(tf.data.TextLineDataset(self.others).take(5), 8)

    def batches(self, rows, size):
        rows = (
            rows
            .map(parse)
            .batch(size)
        )
        return rows
"""
STATEMENTS = """def batches(ds):
    ds = ds.map(parse)
    return ds.batch(8)

def make(files, training):
    ds = tf.data.TFRecordDataset(files)
    if training:
        ds = ds.shuffle(9)
    ds = batches(ds)
    return ds

model.fit(make(files, True), validation_data=make(others, False))
"""
CHANGES = (Move("shuffle", "map"), Insert("map", "cache", {}))


def ops_of(text: str) -> list[Operation]:
    return [op(text, kind, f".{kind}(") for kind in ("shuffle", "map", "batch")]


def after(body: str, *changes: Change) -> str:
    text = HEAD + body
    made, contents = patch(text, ops_of(text), *(changes or CHANGES))
    assert made.left_out == []
    compile(contents, "train.py", "exec")
    return contents.removeprefix(HEAD)


def test_the_function_gets_a_parameter_and_one_call_the_buffer() -> None:
    assert after(CHAINED) == CHAINED.replace(
        "batches(rows)", "batches(rows, shuffle_buffer=0)"
    ).replace(
        ".map(parse)",
        ".map(parse).cache()"
        ".apply(lambda rows: rows.shuffle(shuffle_buffer) if shuffle_buffer else rows)",
    ).replace("(files).shuffle(9))", "(files), shuffle_buffer=9)")


def test_methods_and_chains_over_lines_keep_their_form() -> None:
    found = after(METHODS)
    assert "        rows = rows.shuffle" not in found
    assert "return self.batches(rows, 8, shuffle_buffer=SIZE)" in found
    assert "def batches(self, rows, size, shuffle_buffer=0):" in found
    assert (
        "            .map(parse)\n            .cache()\n            .apply(lambda rows: "
        "rows.shuffle(shuffle_buffer, seed=3) if shuffle_buffer else rows)\n" in found
    )


def test_a_condition_chooses_the_buffer() -> None:
    found = after(STATEMENTS)
    assert "    ds = batches(ds, shuffle_buffer=9 if training else 0)\n" in found
    assert (
        "    ds = ds.map(parse)\n    ds = ds.cache()\n    if shuffle_buffer:\n"
        "        ds = ds.shuffle(shuffle_buffer)\n" in found
    )


def test_conditional_expressions_are_put_in_parentheses() -> None:
    body = STATEMENTS.replace("shuffle(9)", "shuffle(9 if small else 99)")
    assert "shuffle_buffer=(9 if small else 99) if training else 0)" in after(body)
    body = STATEMENTS.replace("if training:", "if training if small else False:")
    assert "shuffle_buffer=9 if (training if small else False) else 0)" in after(body)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("others)", "others).map(augment)", id="another pipeline may draw anew"),
        pytest.param("others)", "others).shuffle(5)", id="another pipeline is shuffled, too"),
        pytest.param("batches(rows)", "batches(rows, **given)", id="other parameters"),
        pytest.param("shuffle(9)", "shuffle(9, seed=draw())", id="arguments of the caller"),
        pytest.param("tf.data.TFRecordDataset(others)", "read(others)", id="unknown source"),
    ],
)
def test_what_is_not_the_same_for_every_caller_is_refused(old: str, new: str) -> None:
    text = HEAD + CHAINED.replace(old, new)
    assert refused(text, [op(text, kind, found) for kind, found in _PLACES], *CHANGES)


_PLACES = (("shuffle", "shuffle(9"), ("map", ".map(parse)"), ("batch", ".batch(8)"))
