"""Differences that are more than chance, and that the machine made: never a slow-down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pipediag.comparison import Comparison, compare
from pipediag.comparison.result import Quantity
from pipediag.comparison.wording import reason
from pipediag.session.model import Session
from tests.comparison.sides import run_of

MINUTES = [f"2026-01-01T00:{at:02}:00+00:00" for at in range(40)]


def made(steps_ms: Sequence[float], places: Sequence[int]) -> list[Session]:
    return [run_of(ms, created_at=MINUTES[at]) for ms, at in zip(steps_ms, places, strict=True)]


def step_of(found: Comparison) -> Quantity:
    return next(one for one in found.quantities if one.name == "step")


def test_a_load_beside_some_runs_of_head_is_no_slow_down() -> None:
    base = [10.0 + 0.05 * (at % 3) for at in range(10)]
    head = [15.0 + 0.05 * (at % 3) if at % 4 else 10.0 for at in range(10)]
    step = step_of(compare(made(base, range(0, 20, 2)), made(head, range(1, 20, 2))))

    assert step.change is not None
    assert step.change.low > 0.0
    assert step.outcome == "inconclusive"
    assert reason(step) == (
        "It reaches the 5 % that count, but the fastest runs of both differ by far less: another "
        "load may have slowed some of them. Measure more runs."
    )


def test_a_load_beside_a_part_of_a_single_run_is_no_slow_down() -> None:
    base = run_of()
    assert base.steps is not None
    loaded = [10.0 + 5.0 * (at >= 12) for at in range(40)]
    head = run_of(13.5, steps=base.steps.model_copy(update={"samples_ms": loaded}))
    step = step_of(compare([base], [head]))

    assert step.change is not None
    assert step.change.low > 0.0
    assert step.change.value > 25.0
    assert step.outcome == "inconclusive"
    assert "the fastest stretches of both differ by far less" in reason(step)


def test_a_machine_that_gets_slower_is_no_slow_down() -> None:
    base, head = [10.0, 10.2, 10.4, 10.6, 10.8], [11.0, 11.2, 11.4, 11.6, 11.8]
    in_order = step_of(compare(made(base, range(5)), made(head, range(5, 10))))
    of_one_time = step_of(compare(made(base, [0] * 5), made(head, [0] * 5)))

    assert of_one_time.outcome == "regressed"
    assert in_order.change is not None
    assert in_order.change.drifting
    assert in_order.outcome == "inconclusive"
    assert "`pipediag compare BASE_DIR HEAD_DIR" in reason(in_order)


def test_a_slow_down_beyond_the_drift_is_one() -> None:
    base, head = [10.0, 10.21, 10.4, 10.61, 10.8], [14.0, 14.21, 14.4, 14.61, 14.8]
    step = step_of(compare(made(base, range(5)), made(head, range(5, 10))))
    assert step.change is not None
    assert step.change.drifting
    assert step.outcome == "regressed"


def test_a_load_beside_half_of_the_runs_is_no_slow_down_though_the_fastest_differ() -> None:
    base = [10.0 + 0.05 * (at % 3) for at in range(10)]
    head = [15.0 + 0.05 * (at % 3) if at % 4 else 10.6 for at in range(10)]
    step = step_of(compare(made(base, range(0, 20, 2)), made(head, range(1, 20, 2))))
    assert step.outcome == "inconclusive"


@pytest.mark.parametrize("places", [range(5, 10), range(20, 25)])
def test_one_after_the_other_a_real_slow_down_is_still_one(places: Sequence[int]) -> None:
    base, head = [10.0, 10.1, 9.9, 10.2, 10.0], [12.0, 12.2, 11.9, 12.1, 12.0]
    step = step_of(compare(made(base, range(5)), made(head, places)))
    assert step.outcome == "regressed"


def test_by_turns_a_machine_that_gets_slower_hides_nothing() -> None:
    random = np.random.default_rng(5)
    found = 0
    for _ in range(100):
        order = [at ^ (at // 2 % 2) for at in range(12)]
        base, head = (
            [
                slower * 10.0 * 1.03**place * float(np.exp(random.normal(0.0, 0.02)))
                for place in order[first::2]
            ]
            for first, slower in ((0, 1.0), (1, 1.2))
        )
        compared = compare(made(base, order[::2]), made(head, order[1::2]))
        found += compared.outcome == "regressed"
    # One after the other and by means alone, it would be found in none.
    assert found >= 90
