from __future__ import annotations

from typing import get_args

from pipediag.reporters.words import step_parts
from pipediag.vocabulary import StepPart
from tests.factories import make_embedding_cost


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
