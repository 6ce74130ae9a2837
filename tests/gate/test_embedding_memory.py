from __future__ import annotations

import pytest

from pipediag.gate.config import GateConfig
from pipediag.gate.embedding_memory import embedding_memory_checks
from pipediag.gate.result import Check
from pipediag.session.embeddings import Embedding
from tests.factories import make_embedding, make_session

GIB = 2**30


def only(*tables: Embedding, most: float = 2.0) -> Check:
    session = make_session(embeddings=list(tables))
    (check,) = embedding_memory_checks([session], GateConfig(max_embedding_gib=most))
    return check


def table(gib: float, slots_gib: float | None, layer: str = "items") -> Embedding:
    slots = None if slots_gib is None else round(slots_gib * GIB)
    return make_embedding(layer=layer, table_bytes=round(gib * GIB), slot_bytes=slots)


@pytest.mark.parametrize(("slots", "outcome"), [(1.0, "pass"), (1.1, "fail")])
def test_tables_and_what_the_optimizer_keeps_count_together(slots: float, outcome: str) -> None:
    assert only(table(0.5, 0.0), table(0.5, slots)).outcome == outcome


def test_the_largest_is_named() -> None:
    check = only(table(0.5, 0.0, "users"), table(1.0, 2.0))
    assert check.sentence == (
        "Embedding tables with their optimizer's variables: 3.50 GiB (largest: items, 3.00 GiB), "
        "limit 2 GiB."
    )


def test_what_is_not_known_may_be_too_much() -> None:
    check = only(table(1.0, None))
    assert check.outcome == "inconclusive"
    assert check.sentence.endswith(
        "What the optimizer keeps for items is not known, so it may be more."
    )
    assert only(table(3.0, None)).outcome == "fail"


def test_without_tables_there_is_no_memory_of_them() -> None:
    assert only(most=0.0).outcome == "pass"


def test_of_several_runs_the_largest_counts() -> None:
    runs = [make_session(embeddings=[table(size, 0.0)]) for size in (1.0, 3.0, 1.0)]
    (check,) = embedding_memory_checks(runs, GateConfig(max_embedding_gib=2.0))
    assert check.outcome == "fail"


def test_without_the_limit_nothing_is_asked() -> None:
    assert embedding_memory_checks([make_session()], GateConfig()) == []
