from __future__ import annotations

from pipediag.capture.trying.blocks import MeasuredSteps, Warmup

MS = 1_000_000


def steps_until_warm(step_ms: int) -> int:
    warmup, now, steps = Warmup(0), 0, 0
    while True:
        now += step_ms * MS
        steps += 1
        if warmup.step(now):
            return steps


def test_short_steps_warm_up_for_three_tenths_of_a_second() -> None:
    assert steps_until_warm(2) == 150


def test_longer_steps_warm_up_for_three_of_them() -> None:
    assert steps_until_warm(400) == 3


def test_very_long_steps_warm_up_for_one() -> None:
    assert steps_until_warm(2500) == 1


def measured(step_ms: int, wanted_ms: int) -> MeasuredSteps:
    steps, now = MeasuredSteps(wanted_ms * MS, 0), 0
    while not steps.step((now := now + step_ms * MS), continuous=True):
        pass
    return steps


def test_a_block_lasts_as_long_as_asked() -> None:
    block = measured(2, 400)

    assert (block.steps, block.elapsed_ns) == (200, 400 * MS)


def test_a_block_has_five_steps_at_least() -> None:
    assert measured(300, 400).steps == 5


def test_a_block_of_very_long_steps_has_two() -> None:
    assert measured(2000, 400).steps == 2


def test_a_block_that_is_to_be_long_is_long_whatever_its_steps() -> None:
    assert measured(2000, 10_000).steps == 5


def test_what_came_between_two_steps_is_left_out() -> None:
    block = MeasuredSteps(100 * MS, last_ns=0)
    block.step(10 * MS, continuous=True)
    block.step(900 * MS, continuous=False)
    block.step(915 * MS, continuous=True)

    assert (block.steps, block.elapsed_ns) == (2, 25 * MS)


def test_a_block_ends_when_the_accelerator_is_done() -> None:
    block = MeasuredSteps(100 * MS, last_ns=0)
    block.step(10 * MS, continuous=True)
    block.settle(14 * MS)

    assert (block.steps, block.elapsed_ns) == (1, 14 * MS)
