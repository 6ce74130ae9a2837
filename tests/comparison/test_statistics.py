from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pipediag.comparison.result import Basis, Change, Outcome
from pipediag.comparison.statistics import (
    FALSE_ALARMS,
    SHARES,
    TIMES,
    Floors,
    Measured,
    Samples,
    blocks,
    change_of_measured_shares,
    change_of_shares,
    change_of_times,
    has_most_of,
    judge,
)


def runs(*values: float) -> Samples:
    return Samples(values, "runs")


def make_change(value: float, low: float, high: float, basis: Basis = "runs") -> Change:
    return Change(value, low, high, basis, (3, 3), 98.0)


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ((20.0, 12.0, 28.0), "regressed"),
        ((5.0, 0.1, 10.0), "regressed"),
        ((4.9, 1.0, 9.0), "same"),
        ((20.0, -1.0, 41.0), "inconclusive"),
        ((0.0, -19.0, 19.0), "same"),
        ((0.0, -25.0, 25.0), "inconclusive"),
        ((-20.0, -30.0, -10.0), "improved"),
        ((-4.0, -6.0, -2.0), "same"),
        ((-20.0, -45.0, 5.0), "same"),
    ],
)
def test_a_regression_needs_both_the_floor_and_the_interval(
    change: tuple[float, float, float], outcome: Outcome
) -> None:
    assert judge(make_change(*change), Floors(5.0, 20.0)) == outcome


def test_the_interval_of_equal_spreads_is_that_of_the_textbook() -> None:
    # Logs 0, 0.1, 0.2 and 0.3, 0.4, 0.5: difference 0.3, variances 0.01, four degrees of freedom,
    # for which Student's table has 3.7469 at one percent.
    base = runs(*(math.exp(one) for one in (0.0, 0.1, 0.2)))
    head = runs(*(math.exp(one) for one in (0.3, 0.4, 0.5)))
    change = change_of_times(base, head, share=1.0)
    reach = 3.746947 * math.sqrt(2 * 0.01 / 3)

    assert change.value == pytest.approx(100 * math.expm1(0.3))
    assert change.low == pytest.approx(100 * math.expm1(0.3 - reach), rel=1e-5)
    assert change.high == pytest.approx(100 * math.expm1(0.3 + reach), rel=1e-5)
    assert (change.samples, change.level) == ((3, 3), 98.0)


def test_what_is_judged_together_is_judged_more_strictly() -> None:
    sides = runs(10.0, 10.1, 10.3), runs(12.0, 12.5, 12.1)
    alone, together = (change_of_times(*sides, share) for share in (1.0, 0.5))

    assert together.low < alone.low < alone.value == together.value < alone.high < together.high
    assert together.level == 99.0


def test_the_value_is_that_of_the_medians_and_lies_in_its_interval() -> None:
    change = change_of_times(runs(10.0, 10.0, 10.0), runs(10.0, 10.0, 40.0), share=1.0)
    assert change.value == 0.0
    assert change.low <= 0.0 <= change.high


def test_one_odd_run_of_three_is_no_regression() -> None:
    change = change_of_times(runs(10.0, 10.1, 9.9), runs(10.0, 30.0, 9.9), share=1.0)
    assert judge(change, TIMES["runs"]) == "inconclusive"


def test_runs_without_any_sense_give_an_interval_without_end_and_no_error() -> None:
    change = change_of_times(runs(1e-6, 1e12, 1e-6), runs(1e12, 1e-6, 1e12), share=0.5)
    assert judge(change, TIMES["runs"]) == "inconclusive"


def test_without_any_spread_the_interval_is_the_value() -> None:
    change = change_of_times(runs(10.0, 10.0, 10.0), runs(12.0, 12.0, 12.0), share=1.0)
    assert (change.low, change.high) == pytest.approx((20.0, 20.0))


def test_shares_differ_by_points() -> None:
    change = change_of_shares(runs(10.0, 11.0, 12.0), runs(30.0, 31.0, 32.0), share=0.5)
    assert change.value == 20.0
    assert judge(change, SHARES["runs"]) == "regressed"


def test_shares_of_single_runs_bring_their_intervals() -> None:
    change = change_of_measured_shares(Measured(20.0, 3.0, 40), Measured(45.0, 4.0, 60), share=1.0)
    # Half a 95 % interval is 1.96 standard errors, and 2.3263 of them leave out one percent.
    reach = 2.3263 / 1.95996 * math.hypot(3.0, 4.0) / 2.0

    assert (change.low, change.high) == pytest.approx((25.0 - reach, 25.0 + reach), rel=1e-4)
    assert (change.basis, change.samples) == ("steps", (40, 60))


@pytest.mark.parametrize(
    ("count", "expected"), [(0, 0), (3, 0), (4, 1), (19, 4), (20, 5), (40, 10), (1000, 10)]
)
def test_stretches_are_long_enough_to_stand_apart(count: int, expected: int) -> None:
    assert len(blocks([1.0] * count)) == expected


def test_a_stretch_is_its_mean() -> None:
    assert blocks([1.0, 2.0, 3.0, 6.0, 9.0]) == [3.0]


@pytest.mark.parametrize(("count", "enough"), [(2, False), (3, True)])
def test_two_runs_are_too_few(count: int, enough: bool) -> None:
    assert Samples((10.0,) * count, "runs").enough is enough


def simulated(
    slowdown: float, *, spread: float, count: int, draws: int = 1_000
) -> Counter[Outcome]:
    """Outcomes of comparisons whose runs differ by chance, log-normally."""
    random = np.random.default_rng(7)
    found: Counter[Outcome] = Counter()
    for _ in range(draws):
        base, head = (
            runs(*(10.0 * scale * np.exp(random.normal(0.0, spread, count))))
            for scale in (1.0, 1.0 + slowdown)
        )
        found[judge(change_of_times(base, head, share=0.5), TIMES["runs"])] += 1
    return found


@pytest.mark.parametrize("spread", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("count", [3, 5])
def test_the_same_code_is_hardly_ever_called_slower(spread: float, count: int) -> None:
    found = simulated(0.0, spread=spread, count=count)
    # Of 1,000 draws the goal allows ten for two quantities together; this is one of them.
    assert found["regressed"] <= 1_000 * FALSE_ALARMS


def test_a_fifth_more_time_is_found_where_runs_differ_by_a_few_percent() -> None:
    assert simulated(0.2, spread=0.03, count=5)["regressed"] >= 950


@pytest.mark.parametrize(
    ("part", "change", "most"),
    [
        (5.0, 6.0, True),
        (4.9, 6.0, False),
        (10.0, 20.0, True),
        (9.9, 20.0, False),
        (-10.0, -20.0, True),
        (-9.9, -20.0, False),
        (10.0, -20.0, False),
        (-10.0, 20.0, False),
    ],
)
def test_half_of_a_change_and_the_floor_are_to_be_left(
    part: float, change: float, most: bool
) -> None:
    assert has_most_of(part, change, floor=5.0) is most


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ((20.0, 10.1, 35.0), "regressed"),
        ((20.0, 9.9, 35.0), "inconclusive"),
        ((-20.0, -35.0, -4.9), "improved"),
        ((2.0, 1.0, 3.0), "same"),
    ],
)
def test_what_is_not_slower_all_along_is_so_far_beyond_the_floor(
    change: tuple[float, float, float], outcome: Outcome
) -> None:
    assert judge(replace(make_change(*change), all_along=False), Floors(5.0, 20.0)) == outcome


def test_a_slow_down_that_does_not_count_is_not_called_one() -> None:
    assert simulated(0.02, spread=0.005, count=5)["regressed"] == 0
