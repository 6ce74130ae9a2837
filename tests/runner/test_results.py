"""Sentences on batches and losses of two versions."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.runner.results import Seen, of_batches, of_losses

ROWS = [["a", 1.0, 2.0], ["b", 3.0, 4.0], ["c", 5.0, 6.0]]


def seen(rows: list[Any] = ROWS, losses: list[float] = (), **other: Any) -> Seen:  # type: ignore[assignment]
    return Seen(rows, other.get("problem"), list(losses))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (seen(), "the first 3 rows are equal."),
        (seen([["a", 1.0, 2.0 + 1e-6], *ROWS[1:]]), "are equal up to rounding."),
        (seen(ROWS[::-1]), "are equal up to order."),
        (seen([["d", 1.0, 2.0], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen([["a", 1.0, 2.1], *ROWS[1:]]), "are different: 2 of them are in both"),
        (seen(ROWS[:2]), "the first 2 rows are equal."),
        (seen([]), "the new version's could not be read; none was taken."),
        (seen(problem="no loop"), "the new version's could not be read; no loop."),
    ],
)
def test_batches_are_equal_or_the_sentence_says_how_they_differ(new: Seen, said: str) -> None:
    assert said in of_batches(seen(), new)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ([3.0, 2.0], "of the first 2 steps are equal."),
        ([3.0, 2.0 + 1e-6, 1.0], "are equal up to rounding."),
        ([3.1, 2.1, 1.1], "agree within what seeds do"),
        ([4.0, 3.0, 2.0], "differ, and not only by the seed"),
        ([], "were not compared"),
    ],
)
def test_losses_agree_within_what_another_seed_changes(new: list[float], said: str) -> None:
    old, other_seed = seen(losses=[3.0, 2.0, 1.0]), seen(losses=[3.1, 1.9, 1.1])
    assert said in of_losses(old, seen(losses=new), other_seed)
