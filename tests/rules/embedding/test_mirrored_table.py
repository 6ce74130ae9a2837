from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import mirrored_table as rule
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.records import make_breakdown
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import keeps_up, only

MIRRORED: dict[str, Any] = {
    "rows": 100_000,
    "table_bytes": 25_600_000,
    "slot_bytes": 0,
    "gradient": "sparse",
    "update": "dense",
    "exchanged": "dense",
}
CLIPPED = make_keras(optimizer="SGD", optimizer_settings={"global_clipnorm": 1.0})


def session_with(
    table: dict[str, Any] | None = None, loop: dict[str, Any] | None = None, **overrides: Any
) -> Session:
    tables = [make_embedding(**{**MIRRORED, **(table or {})})]
    mirrored = {"replicas": 2, "strategy": "MirroredStrategy", "keras": CLIPPED}
    loops = [make_loop(**{**mirrored, **(loop or {})})]
    return make_session(**{**keeps_up(), "embeddings": tables, "loops": loops, **overrides})


def finding_with(**table: Any) -> Finding:
    return only(rule, session_with(table))


def test_a_gradient_that_is_exchanged_in_full_fails() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert "2 replicas add up 26 MB of gradients in each step" in finding.advice
    assert "Clip by `clipnorm`" in finding.advice
    assert finding.trial.reason is not None


@pytest.mark.parametrize(
    ("table", "loop", "said"),
    [
        ({"regularizer": "L2", "gradient": "dense"}, {}, "see `regularized-table`"),
        ({}, {"keras": None}, "Look for what makes gradients whole"),
    ],
)
def test_other_causes(table: dict[str, Any], loop: dict[str, Any], said: str) -> None:
    assert said in only(rule, session_with(table, loop)).advice


def test_rows_that_are_exchanged_pass() -> None:
    assert finding_with(exchanged="sparse").status == "pass"


def test_copies_of_a_gigabyte_inform() -> None:
    finding = finding_with(exchanged="sparse", table_bytes=400_000_000, slot_bytes=800_000_000)

    assert finding.status == "informative"
    assert finding.title == "Each replica holds all of an embedding table"
    assert "1200 MB. Rows divided over them would take 600 MB each" in finding.advice


def test_one_replica_and_small_or_frozen_tables_do_not_count() -> None:
    assert only(rule, session_with(loop={"replicas": 1})).status == "not-applicable"
    assert finding_with(table_bytes=9_000_000).status == "not-applicable"
    assert finding_with(trainable=False).status == "not-applicable"


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("No graph tells.", "No graph tells."),
        (None, "How the gradient of embedding is exchanged was not seen."),
    ],
)
def test_a_step_that_was_not_read_is_inconclusive(missing: str | None, said: str) -> None:
    finding = finding_with(exchanged=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_where_input_decides_it_only_informs() -> None:
    waits = session_with(breakdown=make_breakdown(input_wait=50.0, device_compute=40.0))

    assert only(rule, waits).status == "informative"
    assert "deal with the input first" in only(rule, waits).advice


LIMITS = [
    Limit(
        rule,
        rule.LARGE,
        lambda megabytes: finding_with(table_bytes=int(megabytes * 1e6)),
        "fail",
        "not-applicable",
    ),
    Limit(
        rule,
        rule.MIRRORED,
        lambda megabytes: finding_with(exchanged="sparse", table_bytes=int(megabytes * 1e6)),
        "informative",
        "pass",
    ),
    Limit(
        rule,
        rule.EXCHANGE,
        lambda percent: only(
            rule, session_with(breakdown=make_breakdown(input_wait=1.0, device_compute=percent))
        ),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
