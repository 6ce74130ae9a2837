"""Several edits as one patch, in whatever order they come, and what of them is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.encoding import applicable
from pipediag.patching.making import make_patch, unified
from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Edit,
    Insert,
    Move,
    SetModel,
    SetParameters,
)
from tests.factories import make_session
from tests.patching.scripts import SCRIPT, op, session_of
from tests.records import make_operation, make_pipeline

TEXT = """import tensorflow as tf

ds = tf.data.Dataset.range(9)
ds = ds.map(f)
ds = ds.batch(3)
model.compile("sgd")
val = tf.data.Dataset.range(5).batch(5)
model.fit(ds, validation_data=val)
"""
OPS = [op(TEXT, "range", "range(9)"), op(TEXT, "map", ".map("), op(TEXT, "batch", ".batch(3)")]
VECTOR = Edit("vector", "", (Move("map", "batch"),))
CACHE = Edit("cache", "", (Insert("map", "cache", {"elements": 3}),))
CALLS = Edit("calls", "", (SetParameters("map", {"num_parallel_calls": 4}),))
BY_HAND = Edit("by hand", "", (SetModel({"dtype_policy": "mixed_bfloat16"}),))


def made(*edits: Edit) -> tuple[list[str], list[str], str]:
    """Ids of those that are in the patch, of those that are left out, and the text after it."""
    found, contents = make_patch(session_of(TEXT, *OPS), edits, lambda _: TEXT.encode())
    left = [each.edit for each in found.left_out]
    return found.edits, left, contents.get(SCRIPT, TEXT.encode()).decode()


@pytest.mark.parametrize(
    "edits", [(VECTOR, CACHE, CALLS), (CALLS, CACHE, VECTOR), (CACHE, VECTOR, CALLS)]
)
def test_the_order_of_edits_does_not_matter(edits: tuple[Edit, ...]) -> None:
    """A cache behind a map goes with the map, as in a trial of both."""
    lines = "ds = ds.batch(3)\nds = ds.map(f, num_parallel_calls=4)\nds = ds.cache()\n"
    together, left_out, after = made(*edits)
    assert together == [edit.id for edit in edits]
    assert left_out == []
    assert after == TEXT.replace("ds = ds.map(f)\nds = ds.batch(3)\n", lines)


def test_what_can_not_be_written_leaves_the_others_in() -> None:
    together, left_out, after = made(BY_HAND, CALLS)
    assert (together, left_out) == (["calls"], ["by hand"])
    assert "num_parallel_calls=4" in after


def test_of_two_that_contradict_each_other_the_first_stays() -> None:
    eight = Edit("eight", "", (SetParameters("map", {"num_parallel_calls": 8}),))
    assert made(CALLS, eight)[:2] == (["calls"], ["eight"])
    assert made(CALLS, CALLS)[0] == ["calls", "calls"]


def test_a_cache_of_examples_is_no_cache_of_batches() -> None:
    """Behind a map that itself moves behind the batch it would hold batches."""
    assert made(VECTOR, CACHE)[1] == []
    text = TEXT.replace("ds = ds.map(f)", "ds = ds.map(f).shuffle(9)")
    assert text != TEXT
    shuffled = op(text, "shuffle", ".shuffle(9)", parent_ids=["map"])
    session = session_of(text, *OPS, shuffled)
    patch, _ = make_patch(session, [CACHE, VECTOR], lambda _: text.encode())
    assert [one.edit for one in patch.left_out] == ["vector"]


def test_what_stands_there_already_is_no_patch() -> None:
    same = Edit("same", "", (SetParameters("batch", {"batch_size": 3}),))
    assert made(same)[:2] == ([], ["same"])


def test_files_are_named_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside = unified(str(tmp_path / "a" / "t.py"), b"x\n", b"y\n").split("\n")
    assert inside[:2] == ["--- a/a/t.py", "+++ b/a/t.py"]
    outside = unified("/elsewhere/t.py", b"x\n", b"y\n").split("\n")
    assert outside[:2] == ["--- a/elsewhere/t.py", "+++ b/elsewhere/t.py"]


def test_a_name_with_a_blank_ends_with_a_tab_as_patch_needs() -> None:
    diff = applicable(unified("/my train.py", b"x\n", b"y\n", "/"))
    assert diff.split("\n")[:2] == ["--- a/my train.py\t", "+++ b/my train.py\t"]


def test_only_what_ends_a_line_for_patch_does_so() -> None:
    diff = unified("t.py", b"a = '\x0c\xe2\x80\xa8'\nb\n", b"a = '\x0c\xe2\x80\xa8'\nc\n")
    assert diff.split("\n")[3:] == [" a = '\x0c\u2028'", "-b", "+c", ""]


PARALLEL = {"num_parallel_calls": AUTOTUNE}


@pytest.mark.parametrize(
    ("helper", "kinds", "changes", "said"),
    [
        (
            "image_dataset_from_directory",
            ["shuffle", "map", "batch"],
            (Move("shuffle", "map"), Insert("map", "cache", {"elements": 10})),
            ["`image_dataset_from_directory`", "`batch_size=None", "`.cache().shuffle(...).batch("],
        ),
        (
            "tfds.load",
            ["map"],
            (SetParameters("map", PARALLEL),),
            ["num_parallel_calls_for_decode", "`.cache()`"],
        ),
    ],
)
def test_what_a_helper_makes_is_said_with_how_to_call_it(
    helper: str, kinds: list[str], changes: tuple[Change, ...], said: list[str]
) -> None:
    ops = [make_operation(one, one, line=3, helper=helper, made_by_framework=True) for one in kinds]
    session = make_session(pipeline=make_pipeline(ops=ops))
    patch, _ = make_patch(session, [Edit("edit", "", changes)], lambda _: b"")
    (left,) = patch.left_out
    assert all(words in left.reason for words in said)
