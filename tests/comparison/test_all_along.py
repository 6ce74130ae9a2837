"""What is slower in the fastest steps of each run, and what only now and then or in no step."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from pipediag.comparison import Comparison, compare
from pipediag.comparison.result import Outcome
from pipediag.comparison.wording import reason
from pipediag.session.model import Session
from tests.comparison.sides import run_of
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


def test_it_says_so() -> None:
    base = [now_and_then(one) for one in NEAR]
    step = compare(base, slower(now_and_then, NEAR)).quantities[0]
    assert step.change is not None
    assert 0.0 < step.change.low < 5.0
    assert not step.change.all_along
    assert reason(step) == (
        "It reaches the 5 % that count, but is not seen in the fastest steps of each run: another "
        "load may have slowed parts of them. Measure more runs."
    )


def loaded(step_ms: float, load: float) -> Session:
    """Beside another load in seven of ten stretches."""
    samples = [step_ms * (1.0 + load * (at >= 24)) for at in range(80)]
    mean_ms = step_ms * (1.0 + 0.7 * load)
    steps = make_steps(mean_ms=mean_ms, median_ms=mean_ms, samples_ms=samples)
    return run_of(mean_ms, steps=steps)


def by_turns(base: Sequence[Session], head: Sequence[Session]) -> Comparison:
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
    found = by_turns(base, head)
    step, fastest = found.quantities[0], found.quantities[2]

    assert step.outcome == "inconclusive"
    assert (fastest.name, fastest.outcome) == ("step-at-its-fastest", outcome)
    assert fastest.base == pytest.approx((*FAR, 10.05))
    assert found.outcome == ("regressed" if outcome == "regressed" else "inconclusive")
    # One after the other, it may be a drift of the machine as well.
    assert [one.name for one in compare(base, head).quantities[:3]] == ["step", "run", "input-wait"]


def test_steps_that_are_no_slower_on_the_whole_are_no_slower_by_their_fastest() -> None:
    head = [loaded(1.2 * one, 0.0) for one in FAR]
    base = [loaded(one, 0.2 / 0.7) for one in FAR]
    found = by_turns(base, head)
    assert found.quantities[2].outcome == "not judged"
    assert found.quantities[2].difference == pytest.approx(20.0)
    assert found.outcome == "same"


@pytest.mark.parametrize("make", [all_along, now_and_then, in_imports])
def test_what_got_faster_need_not_be_so_all_along(make: Callable[[float], Session]) -> None:
    base = [make(one) for one in FAR]
    assert compare(slower(make, FAR), base).outcome == "improved"


def test_batches_of_another_size_are_compared_by_their_examples() -> None:
    def of_batches(step_ms: float, batch_size: int) -> Session:
        steps = make_steps(
            mean_ms=step_ms, batch_size=batch_size, samples_ms=[step_ms, step_ms + 0.1] * 20
        )
        return run_of(step_ms, steps=steps)

    base = [of_batches(one, 32) for one in FAR]
    head = [of_batches(2.6 * one, 64) for one in FAR]
    step = compare(base, head).quantities[0]
    assert (step.unit, step.outcome) == ("us", "regressed")
    assert step.change is not None
    assert step.change.all_along
