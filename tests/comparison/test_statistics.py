"""Intervals of changes, what is decided by them, and what the machine may have done."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from pipediag.comparison.statistics import (
    FALSE_ALARMS,
    TIMES,
    Basis,
    Change,
    Floors,
    Order,
    Outcome,
    change_of_times,
    interval_of,
    judge,
    order_of,
    welch,
    without_drift,
)
from pipediag.session.model import Session
from tests.comparison.sides import compare, run_of
from tests.factories import make_part, make_run
from tests.records import make_steps


def make_change(value: float, low: float, high: float, basis: Basis = "runs") -> Change:
    return Change(value, low, high, basis, (3, 3), 98.0, fastest=value)


@pytest.mark.parametrize(
    ("change", "all_along", "outcome"),
    [
        ((20.0, 12.0, 28.0), True, "regressed"),
        ((5.0, 0.1, 10.0), True, "regressed"),
        ((4.9, 1.0, 9.0), True, "same"),
        ((20.0, -1.0, 41.0), True, "inconclusive"),
        ((0.0, -19.0, 19.0), True, "same"),
        ((0.0, -25.0, 25.0), True, "inconclusive"),
        ((-20.0, -30.0, -10.0), True, "improved"),
        ((-4.0, -6.0, -2.0), True, "same"),
        ((-20.0, -45.0, 5.0), True, "same"),
        # What is not slower all along is so far beyond the floor.
        ((20.0, 10.1, 35.0), False, "regressed"),
        ((20.0, 9.9, 35.0), False, "inconclusive"),
        ((-20.0, -35.0, -4.9), False, "improved"),
        ((2.0, 1.0, 3.0), False, "same"),
    ],
)
def test_a_regression_needs_both_the_floor_and_the_interval(
    change: tuple[float, float, float], all_along: bool, outcome: Outcome
) -> None:
    found = judge(replace(make_change(*change), all_along=all_along), Floors(5.0, 20.0))
    assert found == outcome


def test_the_interval_of_equal_spreads_is_that_of_the_textbook() -> None:
    # Logs 0, 0.1, 0.2 and 0.3, 0.4, 0.5: difference 0.3, variances 0.01, four degrees of freedom,
    # for which Student's table has 3.7469 at one percent.
    base, head = np.exp((0.0, 0.1, 0.2)).tolist(), np.exp((0.3, 0.4, 0.5)).tolist()
    change = change_of_times(base, head, share=1.0)
    reach = 3.746947 * math.sqrt(2 * 0.01 / 3)

    assert change.value == pytest.approx(100 * math.expm1(0.3))
    assert change.low == pytest.approx(100 * math.expm1(0.3 - reach), rel=1e-5)
    assert change.high == pytest.approx(100 * math.expm1(0.3 + reach), rel=1e-5)
    assert (change.samples, change.level) == ((3, 3), 98.0)


def simulated(
    slowdown: float, *, spread: float, count: int, draws: int = 1_000
) -> Counter[Outcome]:
    """Outcomes of comparisons whose runs differ by chance, log-normally."""
    random = np.random.default_rng(7)
    found: Counter[Outcome] = Counter()
    for _ in range(draws):
        base, head = (
            (10.0 * scale * np.exp(random.normal(0.0, spread, count))).tolist()
            for scale in (1.0, 1.0 + slowdown)
        )
        found[judge(change_of_times(base, head, share=0.5), TIMES["runs"])] += 1
    return found


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("count", [3, 5])
def test_the_same_code_is_hardly_ever_called_slower(spread: float, count: int) -> None:
    found = simulated(0.0, spread=spread, count=count)
    # Of 1,000 draws the goal allows ten for two quantities together; this is one of them.
    assert found["regressed"] <= 1_000 * FALSE_ALARMS


IN_ORDER = Order((0, 1, 2, 3), (4, 5, 6, 7))


def test_rounds_have_in_common_what_the_machine_did() -> None:
    base = [1.0, 2.0, 3.0, 4.0]
    head = [1.4, 2.6, 3.4, 4.6]
    order = Order((0, 3, 4, 7), (1, 2, 5, 6))
    (low, high), _ = interval_of(base, head, 0.05, order)
    # Differences 0.4, 0.6, 0.4, 0.6: mean 0.5, standard error 0.0577, Student's table 3.1824.
    reach = 3.182446 * math.sqrt(0.04 / 3) / 2
    assert (low, high) == pytest.approx((0.5 - reach, 0.5 + reach))


NOISE = (0.03, -0.05, 0.02, 0.01, -0.04, 0.02, 0.03, -0.02)


@pytest.mark.parametrize("slope", [0.1, 0.3])
@pytest.mark.parametrize("slower", [0.0, 0.7])
def test_a_steady_drift_is_taken_off(slope: float, slower: float) -> None:
    base = [5.0 + slope * at + NOISE[at] for at in IN_ORDER.base]
    head = [5.0 + slower + slope * at + NOISE[at] for at in IN_ORDER.head]
    found = without_drift(base, head, 0.01, IN_ORDER)
    assert found[0] < slower < found[1]
    # The same whatever the slope is: the fit has it apart.
    assert sum(found) / 2 == pytest.approx(slower, abs=0.1)
    (low, high), drifting = interval_of(base, head, 0.01, IN_ORDER)
    assert drifting
    assert low <= found[0]
    assert high == max(found[1], welch(base, head, 0.01)[1])


@pytest.mark.parametrize(
    ("base", "head"),
    [([1.0, 1.1, 1.1, 1.0], [2.0, 2.1, 2.1, 2.0]), ([1.3, 1.2, 1.1, 1.0], [2.3, 2.2, 2.1, 2.0])],
    ids=["none", "that would hide the difference"],
)
def test_what_is_no_drift_takes_nothing_off(base: list[float], head: list[float]) -> None:
    assert without_drift(base, head, 0.01, IN_ORDER) is None
    assert interval_of(base, head, 0.02, IN_ORDER) == (welch(base, head, 0.02), False)


def made_at(*minutes: int) -> list[Session]:
    return [run_of(created_at=f"2026-01-01T00:{at:02}:00+00:00") for at in minutes]


@pytest.mark.parametrize(
    ("base", "head", "order", "alternates"),
    [
        ((0, 5, 6), (1, 4, 9), Order((0, 3, 4), (1, 2, 5)), True),
        ((0, 1, 2), (3, 4, 5), Order((0, 1, 2), (3, 4, 5)), False),
        ((0, 3, 4), (1, 2), Order((0, 3, 4), (1, 2)), True),
        ((0, 3), (1, 2, 4, 5), Order((0, 3), (1, 2, 4, 5)), False),
        ((0, 1, 4), (2, 3, 5), Order((0, 1, 4), (2, 3, 5)), False),
    ],
    ids=["a coin", "one after the other", "cut off", "more of one", "not by rounds"],
)
def test_turns_are_said_from_the_times(
    base: Sequence[int], head: Sequence[int], order: Order, alternates: bool
) -> None:
    found = order_of(made_at(*base), made_at(*head))
    assert found == order
    assert found.alternates is alternates


NEAR = (10.0, 10.45, 9.6)
"""Milliseconds, of base. A fifth more is beyond the floor, with an interval that is not."""

FAR = (10.0, 10.1, 9.9)


def all_along(step_ms: float) -> Session:
    return run_of(step_ms)


def now_and_then(step_ms: float) -> Session:
    """Time above 9 ms is in two of ten stretches."""
    samples = [9.0 + 5 * (step_ms - 9.0) * (at // 8 % 5 == 4) for at in range(80)]
    steps = make_steps(mean_ms=step_ms, median_ms=step_ms, samples_ms=samples)
    return run_of(step_ms, steps=steps)


def in_few_steps(step_ms: float) -> Session:
    """Too few for a stretch."""
    steps = make_steps(mean_ms=step_ms, median_ms=step_ms, samples_ms=[step_ms] * 3)
    return run_of(step_ms, steps=steps)


def in_imports(step_ms: float) -> Session:
    run = make_run(
        total_s=step_ms,
        projected_total_s=None,
        parts=[make_part("startup", step_ms - 8.0, step_ms), make_part("steps", 8.0, step_ms)],
    )
    return run_of(10.0, run=run)


def slower(make: Callable[[float], Session], base: Sequence[float]) -> list[Session]:
    return [make(1.2 * one) for one in base]


@pytest.mark.parametrize(
    ("make", "near", "far"),
    [
        (all_along, ("regressed", "regressed"), ("regressed", "regressed")),
        (now_and_then, ("inconclusive", "inconclusive"), ("regressed", "regressed")),
        (in_few_steps, ("inconclusive", "inconclusive"), ("regressed", "regressed")),
        (in_imports, ("same", "inconclusive"), ("same", "regressed")),
    ],
)
def test_what_another_load_may_be_takes_an_interval_beyond_the_floor(
    make: Callable[[float], Session], near: Sequence[Outcome], far: Sequence[Outcome]
) -> None:
    for base, expected in ((NEAR, near), (FAR, far)):
        found = compare([make(one) for one in base], slower(make, base))
        assert [found[name].outcome for name in ("step", "run")] == list(expected)


MINUTES = [f"2026-01-01T00:{at:02}:00+00:00" for at in range(40)]


def made(steps_ms: Sequence[float], places: Sequence[int]) -> list[Session]:
    return [run_of(ms, created_at=MINUTES[at]) for ms, at in zip(steps_ms, places, strict=True)]


def test_a_load_beside_some_runs_of_head_is_no_slow_down() -> None:
    base = [10.0 + 0.05 * (at % 3) for at in range(10)]
    head = [15.0 + 0.05 * (at % 3) if at % 4 else 10.0 for at in range(10)]
    step = compare(made(base, range(0, 20, 2)), made(head, range(1, 20, 2)))["step"]

    assert step.change.low > 0.0
    assert step.outcome == "inconclusive"


def test_a_machine_that_gets_slower_is_no_slow_down() -> None:
    base, head = [10.0, 10.2, 10.4, 10.6, 10.8], [11.0, 11.2, 11.4, 11.6, 11.8]
    in_order = compare(made(base, range(5)), made(head, range(5, 10)))["step"]
    of_one_time = compare(made(base, [0] * 5), made(head, [0] * 5))["step"]

    assert of_one_time.outcome == "regressed"
    assert in_order.change.drifting
    assert in_order.outcome == "inconclusive"
