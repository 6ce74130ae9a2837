"""Changes that the machine may have made, and those that are real."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pipediag.comparison import Comparison, compare
from pipediag.comparison.result import Outcome, Quantity
from pipediag.session.model import Session
from tests.comparison.sides import outcome_of, run_of
from tests.factories import make_part, make_run
from tests.records import make_steps

NEAR = (10.0, 10.45, 9.6)
"""Milliseconds, of base. A fifth more is beyond the floor, with an interval that is not."""


FAR = (10.0, 10.1, 9.9)


def all_along(step_ms: float) -> Session:
    return run_of(step_ms)


def now_and_then(step_ms: float) -> Session:
    """What is more than 9 ms is in two of ten stretches."""
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
        assert [one.outcome for one in found.quantities[:2]] == list(expected)


def loaded(step_ms: float, load: float) -> Session:
    """Beside another load in seven of ten stretches."""
    samples = [step_ms * (1.0 + load * (at >= 24)) for at in range(80)]
    mean_ms = step_ms * (1.0 + 0.7 * load)
    steps = make_steps(mean_ms=mean_ms, median_ms=mean_ms, samples_ms=samples)
    return run_of(mean_ms, steps=steps)


def compared_in_turn(base: Sequence[Session], head: Sequence[Session]) -> Comparison:
    def made(sessions: Sequence[Session], first: int) -> list[Session]:
        return [
            one.model_copy(update={"created_at": f"2026-01-01T00:{2 * at + first:02}:00+00:00"})
            for at, one in enumerate(sessions)
        ]

    return compare(made(base, 0), made(head, 1))


LOADS = ((0.0, 0.6, 0.1, 0.5), (0.5, 0.0, 0.4, 0.2))


@pytest.mark.parametrize(("slower", "outcome"), [(1.2, "regressed"), (1.0, "not judged")])
def test_a_slow_down_that_another_load_hides_is_seen_in_the_fastest_steps(
    slower: float, outcome: Outcome
) -> None:
    base, head = (
        [loaded(factor * one, load) for one, load in zip((*FAR, 10.05), loads, strict=True)]
        for factor, loads in zip((1.0, slower), LOADS, strict=True)
    )
    found = compared_in_turn(base, head)
    step, fastest = found.quantities[0], found.quantities[2]

    assert step.outcome == "inconclusive"
    assert (fastest.name, fastest.outcome) == ("step-at-its-fastest", outcome)
    assert fastest.base == pytest.approx((*FAR, 10.05))
    assert outcome_of(found) == ("regressed" if outcome == "regressed" else "inconclusive")
    # One after the other, it may be a drift of the machine as well.
    assert [one.name for one in compare(base, head).quantities[:3]] == ["step", "run", "input-wait"]


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


def test_a_machine_that_gets_slower_is_no_slow_down() -> None:
    base, head = [10.0, 10.2, 10.4, 10.6, 10.8], [11.0, 11.2, 11.4, 11.6, 11.8]
    in_order = step_of(compare(made(base, range(5)), made(head, range(5, 10))))
    of_one_time = step_of(compare(made(base, [0] * 5), made(head, [0] * 5)))

    assert of_one_time.outcome == "regressed"
    assert in_order.change is not None
    assert in_order.change.drifting
    assert in_order.outcome == "inconclusive"
