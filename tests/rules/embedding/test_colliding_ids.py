from __future__ import annotations

import pytest

from pipediag.rules.embedding import colliding_ids
from tests.factories import make_session
from tests.rules.embedding.sessions import looked_at, unseen
from tests.rules.sessions import only


def test_ids_that_were_changed_are_shown() -> None:
    session = looked_at(
        cast_through="bfloat16",
        cast_from="int64",
        changed=400,
        changed_examples=[(257, 256), (642, 640)],
        collided=200,
    )
    finding = only(colliding_ids, session)

    assert (finding.status, finding.severity, finding.about_results) == ("fail", "error", True)
    assert "rounds integers above 256: 257 becomes 256, 642 becomes 640" in finding.advice
    assert 'dtype="int32"' in finding.advice


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
    finding = only(colliding_ids, session)

    assert finding.status == status
    if status == "fail":
        assert finding.severity == "warn"
        assert "no id was changed" in finding.advice


def test_ids_that_come_as_floats() -> None:
    finding = only(colliding_ids, looked_at({"rows": 3_000}, cast_through="float16"))

    assert "they come as float16" in finding.advice


def test_where_nothing_was_seen() -> None:
    assert only(colliding_ids, unseen()).advice == "A loop."
    assert only(colliding_ids, unseen(ids_missing=None)).status == "inconclusive"
    assert only(colliding_ids, make_session()).status == "not-applicable"
