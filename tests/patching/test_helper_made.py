"""Edits on what a library's helper makes: how the helper is called otherwise."""

from __future__ import annotations

from typing import Any

from pipediag.patching.making import make_patch
from pipediag.session.edits import AUTOTUNE, Change, Edit, Insert, Move, SetParameters
from pipediag.session.findings import LeftOut
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_operation, make_pipeline


def made_by(helper: str, kind: str, **parameters: Any) -> Operation:
    return make_operation(
        kind, kind, line=3, helper=helper, made_by_framework=True, parameters=parameters
    )


def images() -> list[Operation]:
    return [
        made_by("image_dataset_from_directory", "shuffle", buffer_size=64),
        made_by("image_dataset_from_directory", "map"),
        made_by("image_dataset_from_directory", "batch", batch_size=8),
    ]


def left_out(ops: list[Operation], *changes: Change) -> LeftOut:
    session = make_session(pipeline=make_pipeline(ops=ops))
    patch, _ = make_patch(session, [Edit("edit", "", changes)], lambda _: b"")
    (left,) = patch.left_out
    return left


def test_a_cache_within_a_helper_takes_single_examples() -> None:
    left = left_out(images(), Move("shuffle", "map"), Insert("map", "cache", {"elements": 10}))
    assert "`image_dataset_from_directory`" in left.reason
    assert "`batch_size=None" in left.reason
    assert "`.cache().shuffle(...).batch(...)" in left.reason


def test_what_a_helper_takes_as_an_argument_is_said() -> None:
    opened = made_by("make_csv_dataset", "interleave", cycle_length=1)
    left = left_out([opened], SetParameters("interleave", {"num_parallel_calls": AUTOTUNE}))
    assert "`num_parallel_reads`" in left.reason


def test_how_much_tensorflow_datasets_does_at_once_is_in_its_configuration() -> None:
    decoded = made_by("tfds.load", "map", num_parallel_calls=1)
    left = left_out([decoded], SetParameters("map", {"num_parallel_calls": AUTOTUNE}))
    assert "num_parallel_calls_for_decode" in left.reason
    assert "`.cache()`" in left.reason
