"""A function that makes several pipelines: what suits each of them is written, and told."""

from __future__ import annotations

import pytest

from pipediag.session.edits import Change, Insert, Move, SetOptions, SetParameters
from pipediag.session.pipeline import Operation
from tests.patching.scripts import op, patch, refused

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
TOLD = [
    "`dataset` is called in train.py:9 and train.py:12: every pipeline that it makes gets the "
    "change, and one was measured."
]


def written(*changes: Change, ops: list[Operation] = OPS, text: str = TEXT) -> str:
    made, after = patch(text, ops, *changes)
    assert made.left_out == []
    assert made.shared == TOLD
    return after


def test_a_cache_with_the_shuffle_behind_it_suits_every_pipeline_of_the_function() -> None:
    after = written(Move("shuffle", "map"), Insert("map", "cache", {"elements": 9}))

    assert after == TEXT.replace(
        "    ds = ds.shuffle(len(texts), seed=8)\n    ds = ds.map(featurise)\n",
        "    ds = ds.map(featurise)\n    ds = ds.cache()\n"
        "    ds = ds.shuffle(len(texts), seed=8)\n",
    )


def test_so_do_a_prefetch_and_a_map_behind_its_batch() -> None:
    assert ".batch(64).prefetch(2)\n" in written(Insert("batch", "prefetch", {"buffer_size": 2}))
    assert ".batch(64).map(featurise)\n" in written(Move("map", "batch"))


def test_also_where_both_pipelines_were_recorded() -> None:
    twins = [*OPS, op(TEXT, "map", id="map_of_the_other")]
    assert "ds = ds.cache()" in written(
        Move("shuffle", "map"), Insert("map", "cache", {}), ops=twins
    )


@pytest.mark.parametrize(
    "change",
    [
        Insert("map", "cache", {}),
        Insert("map", "skip", {"count": 2}),
        SetParameters("batch", {"batch_size": 128}),
        SetParameters("shuffle", {"buffer_size": 128}),
        Move("batch", "shuffle"),
        SetOptions({"deterministic": False}),
    ],
)
def test_what_changes_what_is_drawn_or_learnt_is_refused(change: Change) -> None:
    """A cache behind the shuffle freezes the order for whoever reads the data more than once."""
    assert "used in 2 places" in refused(TEXT, OPS, change)


def test_nothing_is_told_of_a_function_that_is_called_once() -> None:
    made, _ = patch(TEXT.partition("if os")[0], OPS, Move("map", "batch"))
    assert made.diff is not None
    assert made.shared == []
