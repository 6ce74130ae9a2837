from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import dense_embedding_update
from pipediag.session.findings import Finding
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.rules.sessions import only

LARGE = {"rows": 500_000, "table_bytes": 128_000_000, "slot_bytes": 256_000_000}


def finding_with(**overrides: Any) -> Finding:
    return only(dense_embedding_update, make_session(embeddings=[make_embedding(**overrides)]))


def with_optimizer(optimizer: str, **overrides: Any) -> Finding:
    table = make_embedding(**{**LARGE, "update": None, **overrides})
    loops = [make_loop(keras=make_keras(optimizer=optimizer))]
    return only(dense_embedding_update, make_session(embeddings=[table], loops=loops))


def test_a_large_table_under_adam_informs() -> None:
    finding = finding_with(update="dense", **LARGE)
    assert finding.status == "informative"
    assert "Adam reads and writes all 500000 rows" in finding.advice
    assert "384 MB" in finding.advice


def test_small_and_sparse_tables_pass() -> None:
    assert finding_with(update="dense").status == "pass"
    assert finding_with(update="sparse", **LARGE).status == "pass"


def test_a_frozen_table_does_not_count() -> None:
    assert finding_with(update="dense", trainable=False, **LARGE).status == "not-applicable"


def test_an_update_that_was_not_seen_is_inconclusive() -> None:
    finding = with_optimizer("MyOwn", missing="The optimizer is a custom one.")
    assert (finding.status, finding.advice) == ("inconclusive", "The optimizer is a custom one.")


@pytest.mark.parametrize(
    ("optimizer", "slot_bytes", "status"),
    [
        ("Adam", 256_000_000, "informative"),
        ("SGD", 0, "pass"),
        ("SGD", 128_000_000, "inconclusive"),
    ],
)
def test_without_having_seen_the_update_the_optimizer_tells(
    optimizer: str, slot_bytes: int, status: str
) -> None:
    assert with_optimizer(optimizer, slot_bytes=slot_bytes).status == status


def test_without_tables() -> None:
    assert only(dense_embedding_update, make_session()).status == "not-applicable"


def test_a_loop_of_one_s_own_has_an_optimizer_without_a_name() -> None:
    table = make_embedding(**{**LARGE, "slot_bytes": None, "update": "dense"})
    own = [make_loop(kind="eager", keras=None)]
    finding = only(dense_embedding_update, make_session(embeddings=[table], loops=own))
    assert finding.advice.startswith("The optimizer reads and writes all 500000 rows")
    assert "(128 MB with its slots)" in finding.advice
    unseen = make_embedding(**{**LARGE, "update": None})
    unknown = only(dense_embedding_update, make_session(embeddings=[unseen], loops=own))
    assert unknown.advice == "How embedding is updated was not seen."
