from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipediag.comparison.order import Order, order_of
from pipediag.session.model import Session
from tests.comparison.sides import run_of


def made_at(*minutes: int) -> list[Session]:
    return [run_of(created_at=f"2026-01-01T00:{at:02}:00+00:00") for at in minutes]


@pytest.mark.parametrize(
    ("base", "head", "order", "by_turns"),
    [
        ((0, 5, 6), (1, 4, 9), Order((0, 3, 4), (1, 2, 5)), True),
        ((0, 1, 2), (3, 4, 5), Order((0, 1, 2), (3, 4, 5)), False),
        ((0, 3, 4), (1, 2), Order((0, 3, 4), (1, 2)), True),
        ((0, 3), (1, 2, 4, 5), Order((0, 3), (1, 2, 4, 5)), False),
        ((0, 1, 4), (2, 3, 5), Order((0, 1, 4), (2, 3, 5)), False),
    ],
    ids=["a coin", "one after the other", "cut off", "more of one", "not by rounds"],
)
def test_turns_are_told_from_the_times(
    base: Sequence[int], head: Sequence[int], order: Order, by_turns: bool
) -> None:
    found = order_of(made_at(*base), made_at(*head))
    assert found == order
    assert found is not None
    assert found.by_turns is by_turns


def test_runs_of_the_same_time_have_no_order() -> None:
    assert order_of(made_at(0, 1), made_at(1, 2)) is None
