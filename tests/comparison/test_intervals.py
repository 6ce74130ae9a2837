from __future__ import annotations

import math

import numpy as np
import pytest

from pipediag.comparison.intervals import Difference, of_difference, of_rounds, welch, without_drift
from pipediag.comparison.order import Order

IN_ORDER = Order((0, 1, 2, 3), (4, 5, 6, 7))
TURNS = Order((0, 3, 4, 7), (1, 2, 5, 6))


def test_rounds_have_in_common_what_the_machine_did() -> None:
    base = [1.0, 2.0, 3.0, 4.0]
    head = [1.4, 2.6, 3.4, 4.6]
    low, high = of_rounds(base, head, 0.025)
    # Differences 0.4, 0.6, 0.4, 0.6: mean 0.5, standard error 0.0577, Student's table 3.1824.
    reach = 3.182446 * math.sqrt(0.04 / 3) / 2
    assert (low, high) == pytest.approx((0.5 - reach, 0.5 + reach))


def test_a_run_whose_round_is_not_complete_is_in_no_difference() -> None:
    whole = of_rounds([1.0, 2.0], [1.5, 2.6], 0.05)
    assert of_rounds([1.0, 2.0, 99.0], [1.5, 2.6], 0.05) == whole


def test_by_turns_both_intervals_share_the_error() -> None:
    base, head = [1.0, 2.0, 3.0, 4.0], [1.4, 2.6, 3.4, 4.6]
    found = of_difference(base, head, 0.02, TURNS)
    assert (found.low, found.high) == of_rounds(base, head, 0.01)
    apart = [1.0, 1.1, 0.9, 1.0], [1.5, 1.4, 1.6, 1.5]
    found = of_difference(*apart, 0.02, TURNS)
    both = welch(*apart, 0.01), of_rounds(*apart, 0.01)
    assert (found.low, found.high) == (max(one[0] for one in both), min(one[1] for one in both))


def test_without_an_order_there_are_no_rounds() -> None:
    sides = [1.0, 2.0, 3.0, 4.0], [1.4, 2.6, 3.4, 4.6]
    assert of_difference(*sides, 0.02, None) == Difference(*welch(*sides, 0.02))


NOISE = (0.03, -0.05, 0.02, 0.01, -0.04, 0.02, 0.03, -0.02)


@pytest.mark.parametrize("slope", [0.1, 0.3])
@pytest.mark.parametrize("slower", [0.0, 0.7])
def test_a_steady_drift_is_taken_off(slope: float, slower: float) -> None:
    base = [5.0 + slope * at + NOISE[at] for at in IN_ORDER.base]
    head = [5.0 + slower + slope * at + NOISE[at] for at in IN_ORDER.head]
    found = without_drift(base, head, 0.01, IN_ORDER)
    assert found is not None
    assert found[0] < slower < found[1]
    # The same whatever the slope is: the fit has it apart.
    assert sum(found) / 2 == pytest.approx(slower, abs=0.1)
    whole = of_difference(base, head, 0.01, IN_ORDER)
    assert whole.drifting
    assert whole.low <= found[0]
    assert whole.high == max(found[1], welch(base, head, 0.01)[1])


def test_the_fit_is_that_of_least_squares() -> None:
    base, head = [1.0, 1.5, 1.7, 2.4], [3.1, 3.3, 4.0, 4.2]
    columns = np.array([[1.0, float(at > 3), float(at)] for at in range(8)])
    fitted, residuals, *_ = np.linalg.lstsq(columns, np.array([*base, *head]), rcond=None)
    error = math.sqrt(residuals[0] / 5 * np.linalg.inv(columns.T @ columns)[1, 1])
    # Student's table at one percent and five degrees of freedom.
    expected = (fitted[1] - 3.364930 * error, fitted[1] + 3.364930 * error)
    assert without_drift(base, head, 0.01, IN_ORDER) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ([1.0, 1.1, 1.1, 1.0], [2.0, 2.1, 2.1, 2.0]),
        ([1.3, 1.2, 1.1, 1.0], [2.3, 2.2, 2.1, 2.0]),
    ],
    ids=["none", "that would hide the difference"],
)
def test_what_is_no_drift_takes_nothing_off(base: list[float], head: list[float]) -> None:
    assert without_drift(base, head, 0.01, IN_ORDER) is None
    assert of_difference(base, head, 0.02, IN_ORDER) == Difference(*welch(base, head, 0.02))


def test_runs_without_any_spread_are_an_interval_without_width() -> None:
    for order in (None, TURNS, IN_ORDER):
        found = of_difference([1.0] * 4, [2.0] * 4, 0.01, order)
        assert (found.low, found.high) == pytest.approx((1.0, 1.0))
