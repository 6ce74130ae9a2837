"""How strictly runs that grow in number are judged each time."""

from __future__ import annotations

import pytest

from pipediag.comparison.looks import share_of_look


@pytest.mark.parametrize("most", [3, 4, 5, 6, 10, 100])
def test_all_looks_that_can_end_it_with_a_difference_have_the_whole_error_together(
    most: int,
) -> None:
    first = min(5, most)
    spent = [share_of_look(rounds, most) for rounds in range(first, most + 1)]
    assert sum(spent) == pytest.approx(1.0)
    assert spent[1:] == sorted(spent[1:])


def test_the_share_that_is_spent_is_that_of_rounds_to_the_third_power() -> None:
    shares = [share_of_look(rounds, 10) for rounds in range(3, 11)]
    # The looks before the fifth round, of which none ends it with a difference, judge as it does.
    assert shares == pytest.approx([0.125, 0.125, 0.125, 0.091, 0.127, 0.169, 0.217, 0.271])
