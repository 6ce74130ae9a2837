from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.step import most_of_free_input, on_a_repeated_batch
from pipediag.session.model import Session
from pipediag.session.steps import Ceiling, Differential
from tests.factories import make_loop, make_loop_time, make_session
from tests.records import make_input_wait


def alone(share: float) -> Differential:
    step_ms = 10.0 * (1 - share / 100.0)
    return Differential(
        step_ms=step_ms, ci95_ms=(step_ms, step_ms), steps=30, input_share_percent=share
    )


def session_with(**overrides: Any) -> Session:
    """By its waits free input would make a step 2.5 times as fast, by a repeated batch 4 times."""
    ceiling = Ceiling(
        speedup_if_input_free=2.5,
        ci95=(2.3, 2.8),
        next_bottleneck="dispatch",
        loop_speedup_if_input_free=2.0,
    )
    values: dict[str, Any] = {
        "ceiling": ceiling,
        "input_wait": make_input_wait(contention="python"),
        "differential": alone(75.0),
        "loops": [make_loop(time=make_loop_time(total_s=20.0, steps_s=16.0))],
    }
    return make_session(**{**values, **overrides})


@pytest.mark.parametrize("contention", ["python", "cpu"])
def test_what_slows_the_consumer_goes_with_the_input(contention: str) -> None:
    found = on_a_repeated_batch(session_with(input_wait=make_input_wait(contention=contention)))
    assert found == pytest.approx(4.0)


@pytest.mark.parametrize(
    "overrides",
    [
        {"input_wait": None},
        {"input_wait": make_input_wait()},
        {"input_wait": make_input_wait(contention="python", method="differential")},
        {"input_wait": make_input_wait(contention="python", contested_by_percent=75.0)},
        {"differential": None},
        {"ceiling": None},
        {"ceiling": Ceiling(speedup_if_input_free=None, next_bottleneck=None)},
    ],
)
def test_without_two_measures_that_may_differ_there_is_one(overrides: dict[str, Any]) -> None:
    assert on_a_repeated_batch(session_with(**overrides)) is None


@pytest.mark.parametrize(("share", "told"), [(50.0, False), (64.0, False), (65.0, True)])
def test_it_is_told_from_beyond_the_interval_on(share: float, told: bool) -> None:
    """The interval of the waits ends at 2.8, which is a share of 64.3 %."""
    assert (on_a_repeated_batch(session_with(differential=alone(share))) is not None) is told


def test_a_narrow_interval_is_not_enough() -> None:
    narrow = Ceiling(speedup_if_input_free=2.5, ci95=(2.49, 2.51), next_bottleneck=None)
    assert on_a_repeated_batch(session_with(ceiling=narrow, differential=alone(63.0))) is None
    assert on_a_repeated_batch(session_with(ceiling=narrow, differential=alone(64.0))) is not None


def test_a_repeated_batch_without_a_step_left_tells_no_gain() -> None:
    assert on_a_repeated_batch(session_with(differential=alone(100.0))) is None


def test_the_bound_is_the_largest_gain_of_all_measures_and_of_the_whole_loop() -> None:
    # Of 20 s, 10 are left; the steps' 16 s are 6.4 by the waits and 4 by the repeated batch.
    assert most_of_free_input(session_with()) == pytest.approx(20 / 7.6)


@pytest.mark.parametrize(
    ("overrides", "most"),
    [
        ({}, 4.0),
        ({"differential": None}, 2.8),
        ({"input_wait": make_input_wait(contested_by_percent=80.0)}, 5.0),
        ({"ceiling": Ceiling(speedup_if_input_free=2.5, next_bottleneck=None)}, 4.0),
        ({"ceiling": Ceiling(speedup_if_input_free=None, next_bottleneck=None)}, None),
        ({"ceiling": None}, None),
    ],
)
def test_without_the_loops_time_the_bound_is_of_the_steps(
    overrides: dict[str, Any], most: float | None
) -> None:
    found = most_of_free_input(session_with(loops=[make_loop(time=None)], **_of_steps(overrides)))
    assert found == (None if most is None else pytest.approx(most))


def _of_steps(overrides: dict[str, Any]) -> dict[str, Any]:
    ceiling = Ceiling(speedup_if_input_free=2.5, ci95=(2.3, 2.8), next_bottleneck="dispatch")
    return {"ceiling": ceiling, **overrides}
