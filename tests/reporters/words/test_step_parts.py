from __future__ import annotations

from typing import get_args

from pipediag.reporters.words import step_parts
from pipediag.session.embeddings import EmbeddingCost, FusedParts, PartName
from pipediag.vocabulary import StepPart
from tests.factories import make_compute_bound_session, make_embedding_cost, make_session


def test_every_part_has_a_name_of_its_own() -> None:
    parts: tuple[StepPart, ...] = get_args(StepPart)
    cost = make_embedding_cost(*((part, 1.0) for part in parts))
    names = [step_parts.name(one) for one in cost.parts]

    assert len(set(names)) == len(names) == len(parts)


def test_how_the_time_was_divided() -> None:
    alone = make_embedding_cost(("rest", 1.0))
    shared = make_embedding_cost(("rest", 1.0), overlap=1.5)

    assert step_parts.basis(alone) == "By the operations of 20 profiled steps."
    assert "several ran at once, 1.50 on average, each has an equal part" in (
        step_parts.basis(shared)
    )


def test_a_compute_bound_step_says_which_table_takes_most_of_it() -> None:
    update = make_embedding_cost(("update", 9.0), ("rest", 1.0))
    rest = make_embedding_cost(("update", 2.0), ("rest", 8.0))
    shared = make_embedding_cost(("update", 4.0), ("lookup", 3.0), ("rest", 3.0))

    def said(cost: EmbeddingCost) -> str | None:
        session = make_compute_bound_session()
        return step_parts.largest(session.model_copy(update={"embedding_cost": cost}))

    assert said(update) == (
        "Most of that is the optimizer's update of `embedding`: 9.00\N{NO-BREAK SPACE}ms, 90 % of "
        "the compute."
    )
    assert said(rest) is None
    assert said(shared) is None
    assert step_parts.largest(make_compute_bound_session()) is None
    assert step_parts.largest(make_session(embedding_cost=update)) is None


def test_what_xla_fused_is_named_the_largest_and_no_trifle() -> None:
    parts = [PartName(part="lookup", layer="words"), PartName(part="rest")]
    shares = [30.0, 12.4, 5.0, 2.0, 0.9]
    cost = make_embedding_cost(
        ("rest", 1.0),
        fused=[FusedParts(parts=parts, ms=1.0, percent=percent) for percent in shares],
    )

    said = list(step_parts.fused(cost))

    assert said[1] == (
        "Fused by XLA and not told apart, 12 %: lookup of `words`, rest of the model."
    )
    assert len(said) == 3
    assert not list(step_parts.fused(cost.model_copy(update={"fused": cost.fused[4:]})))
