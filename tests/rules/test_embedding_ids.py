from __future__ import annotations

import pytest

from pipediag.rules.embedding_ids import COLLIDING_IDS, IDS_OUTSIDE_TABLE, MASKED_TOKEN
from pipediag.session.model import Script
from tests.factories import make_embedding, make_loop, make_session
from tests.rules.ids import looked_at, unseen
from tests.rules.sessions import only

ERROR = (
    "InvalidArgumentError: Graph execution error: Detected at node GatherV2 ... "
    "indices[3,0] = 1000 is not in [0, 1000) [[{{node GatherV2}}]]"
)


def test_ids_past_the_last_row_are_named_with_their_batch() -> None:
    finding = only(
        IDS_OUTSIDE_TABLE,
        looked_at(largest=1_200, outside=3, outside_examples=[(42, 1_000), (47, 1_200)]),
    )

    assert (finding.status, finding.severity, finding.about_results) == ("fail", "error", True)


def test_ids_within_pass() -> None:
    assert only(IDS_OUTSIDE_TABLE, looked_at(smallest=0, largest=999)).status == "pass"


def test_the_error_that_ended_the_script_tells_too() -> None:
    script = Script(path="train.py", args=[], status=1, outcome="raised", detail=ERROR)
    loops = [make_loop(steps=7)]
    session = make_session(script=script, loops=loops, embeddings=[make_embedding()])
    finding = only(IDS_OUTSIDE_TABLE, session)

    assert finding.status == "fail"
    assert finding.evidence["known_from"] == "the script's error"
    only(IDS_OUTSIDE_TABLE, make_session(script=script, loops=[]))


def test_outside_where_nothing_was_seen() -> None:
    assert only(IDS_OUTSIDE_TABLE, unseen(ids_missing=None)).status == "inconclusive"
    assert only(IDS_OUTSIDE_TABLE, make_session()).status == "not-applicable"


def test_ids_that_were_changed_are_shown() -> None:
    session = looked_at(
        cast_through="bfloat16",
        cast_from="int64",
        changed=400,
        changed_examples=[(257, 256), (642, 640)],
        collided=200,
    )
    finding = only(COLLIDING_IDS, session)

    assert (finding.status, finding.severity, finding.about_results) == ("fail", "error", True)


@pytest.mark.parametrize(
    ("through", "rows", "status"),
    [
        ("bfloat16", 257, "pass"),
        ("bfloat16", 258, "fail"),
        ("float16", 2_049, "pass"),
        ("float16", 2_050, "fail"),
        ("float32", 16_777_217, "pass"),
        ("float32", 16_777_218, "fail"),
        ("float8_e4m3fn", 1_000_000, "pass"),
        (None, 100_000_000, "pass"),
    ],
)
def test_a_table_with_rows_that_no_id_can_reach(
    through: str | None, rows: int, status: str
) -> None:
    session = looked_at({"rows": rows}, cast_through=through, cast_from="int64")
    finding = only(COLLIDING_IDS, session)

    assert finding.status == status
    if status == "fail":
        assert finding.severity == "warn"


def test_colliding_where_nothing_was_seen() -> None:
    assert only(COLLIDING_IDS, unseen(ids_missing=None)).status == "inconclusive"
    assert only(COLLIDING_IDS, make_session()).status == "not-applicable"


MASKED = {"mask_zero": True}


@pytest.mark.parametrize(("within", "status"), [(7, "pass"), (8, "fail"), (500, "fail")])
def test_zeros_between_other_ids(within: int, status: str) -> None:
    finding = only(MASKED_TOKEN, looked_at(MASKED, zeros_within=within))

    assert finding.status == status
    if status == "fail":
        assert finding.about_results


def test_a_lookup_layer_that_gives_zero_for_a_token() -> None:
    finding = only(MASKED_TOKEN, looked_at(MASKED, zero_is_a_token=True))

    assert finding.status == "fail"
    assert only(MASKED_TOKEN, looked_at(MASKED, zero_is_a_token=False)).status == "pass"


def test_without_a_mask_zero_is_an_id_like_any_other() -> None:
    assert only(MASKED_TOKEN, looked_at(zeros_within=500)).status == "not-applicable"


def test_masked_where_nothing_was_seen() -> None:
    assert only(MASKED_TOKEN, unseen(mask_zero=True, ids_missing=None)).status == "inconclusive"
