from __future__ import annotations

import math
from typing import Any

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.padding_limit import padding_limit_checks
from pipediag.gate.result import Check
from pipediag.session.embeddings import EmbeddingIds
from pipediag.session.model import Session
from tests.factories import make_embedding, make_session
from tests.records import make_steps


def ids(percent: float | None, **overrides: Any) -> EmbeddingIds:
    values: dict[str, Any] = {
        "batches": 4,
        "first_batch": 1,
        "last_batch": 4,
        "dtype": "int64",
        "lookups": 1000,
        "lookups_per_step": 250.0,
        "unique": 50,
        "unique_per_step": 30.0,
        "smallest": 0,
        "largest": 99,
        "zero_percent": percent,
        "hot_rows": 1,
        "hot_percent": 10.0,
    }
    return EmbeddingIds(**{**values, **overrides})


def looking_up(
    *looked_at: EmbeddingIds | None, batch_size: int | None = 32, mask_zero: bool = True
) -> Session:
    return make_session(
        embeddings=[make_embedding(ids=one, mask_zero=mask_zero) for one in looked_at],
        steps=make_steps(batch_size=batch_size),
    )


def only(*sessions: Session, most: float) -> Check:
    (check,) = padding_limit_checks(sessions, GateConfig(max_padding_percent=most))
    return check


def test_nothing_is_said_where_there_is_no_limit() -> None:
    assert padding_limit_checks([looking_up(ids(50.0))], GateConfig()) == []


@pytest.mark.parametrize(
    ("most", "outcome"),
    [(41.0, "fail"), (42.0, "inconclusive"), (58.0, "inconclusive"), (59.0, "pass")],
)
def test_examples_that_were_not_looked_at_are_in_the_interval(most: float, outcome: str) -> None:
    check = only(looking_up(ids(50.0)), most=most)
    reach = 1.96 * 50.0 / math.sqrt(4 * 32)
    assert check.interval == pytest.approx((50.0 - reach, 50.0 + reach))
    assert (check.outcome, check.value, check.limit) == (outcome, 50.0, most)


def test_where_the_size_of_a_batch_is_not_known_each_is_one() -> None:
    check = only(looking_up(ids(50.0), batch_size=None), most=10.0)
    assert check.interval == pytest.approx((1.0, 99.0))


def test_tables_count_by_their_lookups() -> None:
    check = only(looking_up(ids(0.0, lookups=3000), ids(80.0), None), most=5.0)
    assert check.value == pytest.approx(20.0)
    assert check.sentence.startswith("Padding: 20.0 % of the ids (95 % interval 13.1 to 26.9 %)")


@pytest.mark.parametrize("percent", [0.0, None])
def test_without_padding_every_limit_is_kept(percent: float | None) -> None:
    assert only(looking_up(ids(percent)), most=0.0).outcome == "pass"


@pytest.mark.parametrize(
    ("looked_at", "mask_zero"),
    [(None, True), (ids(50.0), False), (ids(50.0, zero_is_a_token=True), True)],
)
def test_what_nothing_calls_padding_is_none(
    looked_at: EmbeddingIds | None, mask_zero: bool
) -> None:
    check = only(looking_up(looked_at, mask_zero=mask_zero), most=90.0)
    assert check.outcome == "inconclusive"


def test_a_table_of_tokens_that_gives_0_for_none_says_that_it_is_padding() -> None:
    check = only(looking_up(ids(50.0, zero_is_a_token=False), mask_zero=False), most=90.0)
    assert (check.outcome, check.value) == ("pass", 50.0)


def test_runs_are_judged_by_their_median() -> None:
    check = only(*(looking_up(ids(one)) for one in (49.0, 50.0, 51.0)), most=70.0)
    assert (check.outcome, check.value) == ("pass", 50.0)
