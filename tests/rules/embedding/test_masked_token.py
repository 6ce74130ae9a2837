from __future__ import annotations

import pytest

from pipediag.rules.embedding import masked_token
from tests.rules.embedding.sessions import looked_at, unseen
from tests.rules.sessions import only

MASKED = {"mask_zero": True}


@pytest.mark.parametrize(("within", "status"), [(7, "pass"), (8, "fail"), (500, "fail")])
def test_zeros_between_other_ids(within: int, status: str) -> None:
    finding = only(masked_token, looked_at(MASKED, zeros_within=within))

    assert finding.status == status
    if status == "fail":
        assert finding.about_results
        assert f"{within} zeros of 8000 ids of `embedding`" in finding.advice


def test_a_lookup_layer_that_gives_zero_for_a_token() -> None:
    finding = only(masked_token, looked_at(MASKED, zero_is_a_token=True))

    assert finding.status == "fail"
    assert "in front of `embedding` a `mask_token`, or leave" in finding.advice
    assert only(masked_token, looked_at(MASKED, zero_is_a_token=False)).status == "pass"


def test_without_a_mask_zero_is_an_id_like_any_other() -> None:
    assert only(masked_token, looked_at(zeros_within=500)).status == "not-applicable"


def test_where_nothing_was_seen() -> None:
    assert only(masked_token, unseen(mask_zero=True)).advice == "A loop."
    assert only(masked_token, unseen(mask_zero=True, ids_missing=None)).status == "inconclusive"
