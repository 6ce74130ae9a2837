from __future__ import annotations

import pytest

from pipediag.facts.embeddings import part_ms, parts_ms
from pipediag.session.embedding_cost import NO_PROGRAM, EmbeddingCost, FusedParts, PartName
from pipediag.session.model import Session
from tests.factories import make_embedding, make_embedding_cost, make_session


def session(cost: EmbeddingCost | None, percent: float = 0.0) -> Session:
    """One in which XLA fused so much of the lookup with the rest of the model."""
    if cost is not None and percent:
        names = [PartName(part="lookup", layer="embedding"), PartName(part="rest")]
        fused = [FusedParts(parts=names, ms=percent, percent=percent)]
        cost = cost.model_copy(update={"fused": fused})
    return make_session(embedding_cost=cost, embeddings=[make_embedding()])


def cost() -> EmbeddingCost:
    return make_embedding_cost(("lookup", 2.0), ("update", 30.0), ("rest", 68.0))


def test_parts_of_a_table_add_up() -> None:
    told = session(cost())

    assert parts_ms(told, told.embeddings, ("lookup", "update")) == 32.0
    assert parts_ms(told, told.embeddings, ("copy",)) == 0.0
    assert parts_ms(told, [make_embedding(layer="other")], ("update",)) is None
    assert part_ms(told, "rest") == 68.0
    assert part_ms(session(None), "rest") is None


@pytest.mark.parametrize(("percent", "hidden"), [(0.4, False), (5.0, True)])
def test_a_part_that_xla_fused_with_others_is_not_known(percent: float, hidden: bool) -> None:
    told = session(cost(), percent)

    assert parts_ms(told, told.embeddings, ("lookup",)) == (None if hidden else 2.0)
    assert part_ms(told, "rest") == (None if hidden else 68.0)
    assert parts_ms(told, told.embeddings, ("update",)) == 30.0
    assert part_ms(told, "vocabulary") == 0.0


@pytest.mark.parametrize(("not_told", "hidden"), [(5.4, False), (15.0, True)])
def test_no_part_is_known_where_programs_that_were_not_kept_may_hold_it(
    not_told: float, hidden: bool
) -> None:
    """Five of what is not told was fused, in programs that were kept."""
    names = [PartName(part="copy", layer="other"), PartName(part="rest")]
    found = make_embedding_cost(
        ("lookup", 100.0 - not_told),
        ("not_told", not_told),
        fused=[FusedParts(parts=names, ms=5.0, percent=5.0)],
        notes=[NO_PROGRAM],
    )
    told = session(found)

    assert parts_ms(told, told.embeddings, ("update",)) == (None if hidden else 0.0)
    assert part_ms(told, "vocabulary") == (None if hidden else 0.0)
    kept = session(found.model_copy(update={"notes": []}))
    assert parts_ms(kept, kept.embeddings, ("update",)) == 0.0
