from __future__ import annotations

from pipediag.capture.trying.blocks import EpochWithin, MeasuredSteps, TimedBlock, Warmup

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


def timed(first_ms: int, step_ms: int, epoch_steps: int | None) -> TimedBlock:
    """A block of 400 ms, begun at 0, whose first step waits."""
    block = TimedBlock(0, 400 * MS, lambda now_ns: now_ns, epoch_steps)
    now = first_ms * MS
    while not block.step(now, continuous=True):
        now += step_ms * MS
    return block


def test_an_epoch_that_is_soon_over_counts_as_it_is() -> None:
    block = timed(first_ms=500, step_ms=5, epoch_steps=29)

    assert (block.first_ns, block.steps, block.elapsed_ns) == (500 * MS, 29, 145 * MS)


def test_of_a_long_epoch_steps_behind_a_warm_up_stand_for_the_others() -> None:
    block = timed(first_ms=3_000, step_ms=5, epoch_steps=1_000)

    assert (block.first_ns, block.steps, block.elapsed_ns) == (3_000 * MS, 80, 400 * MS)


def test_an_epoch_that_ends_in_the_middle_of_a_block_goes_no_further() -> None:
    block = timed(first_ms=10, step_ms=10, epoch_steps=50)

    assert (block.steps, block.elapsed_ns) == (50, 500 * MS)


def test_without_an_epoch_the_first_step_is_a_part_of_the_warm_up() -> None:
    block = timed(first_ms=290, step_ms=10, epoch_steps=None)

    assert (block.first_ns, block.steps, block.elapsed_ns) == (290 * MS, 40, 400 * MS)


def test_of_a_pipeline_through_all_epochs_an_end_counts_and_no_start() -> None:
    """Nine steps of 10 ms and one that waits for what comes of an epoch's end."""
    block, now = EpochWithin(10, lambda now_ns: now_ns + 1), 900 * MS
    for step_ms in (0, *[10] * 4, 210, *[10] * 4):
        now += step_ms * MS
        assert not block.step(now, continuous=True)
    assert block.step(now + 10 * MS, continuous=False)

    assert (block.steps, block.elapsed_ns, block.first_ns) == (10, 300 * MS, 30 * MS)
    assert not block.warms_up
