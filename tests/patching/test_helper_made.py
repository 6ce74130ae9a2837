"""Edits on what a library's helper makes: how the helper is called otherwise."""

from __future__ import annotations

import pytest

from pipediag.patching.making import make_patch
from pipediag.session.edits import AUTOTUNE, Change, Edit, Insert, Move, SetParameters
from tests.factories import make_session
from tests.records import make_operation, make_pipeline

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
            "make_csv_dataset",
            ["interleave"],
            (SetParameters("interleave", PARALLEL),),
            ["`num_parallel_reads`"],
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
