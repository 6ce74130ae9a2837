from __future__ import annotations

import pytest

from pipediag.capture.trying.blocks import EpochWithin, MeasuredSteps, TimedBlock, Warmup

MS = 1_000_000


def steps_until_warm(step_ms: int) -> int:
    warmup, now, steps = Warmup(0), 0, 0
    while True:
        now += step_ms * MS
        steps += 1
        if warmup.step(now):
            return steps


def measured(step_ms: int, wanted_ms: int) -> MeasuredSteps:
    steps, now = MeasuredSteps(wanted_ms * MS, 0), 0
    while not steps.step((now := now + step_ms * MS), continuous=True):
        pass
    return steps


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


def test_of_a_pipeline_through_all_epochs_an_end_counts_and_no_start() -> None:
    """Nine steps of 10 ms and one that waits for what comes of an epoch's end."""
    block, now = EpochWithin(10, lambda now_ns: now_ns + 1), 900 * MS
    for step_ms in (0, *[10] * 4, 210, *[10] * 4):
        now += step_ms * MS
        assert not block.step(now, continuous=True)
    assert block.step(now + 10 * MS, continuous=False)

    assert (block.steps, block.elapsed_ns, block.first_ns) == (10, 300 * MS, 30 * MS)
    assert not block.warms_up


@pytest.mark.parametrize(("step_ms", "steps"), [(2, 150), (400, 3), (2500, 1)])
def test_a_warm_up_takes_some_time_and_some_steps(step_ms: int, steps: int) -> None:
    assert steps_until_warm(step_ms) == steps


@pytest.mark.parametrize(
    ("step_ms", "wanted_ms", "steps"),
    [(2, 400, 200), (300, 400, 5), (2000, 400, 2), (2000, 10_000, 5)],
)
def test_a_block_lasts_as_long_as_asked_and_some_steps(
    step_ms: int, wanted_ms: int, steps: int
) -> None:
    assert measured(step_ms, wanted_ms).steps == steps


@pytest.mark.parametrize(
    ("first_ms", "step_ms", "epoch_steps", "steps"),
    [(500, 5, 29, 29), (3_000, 5, 1_000, 80), (10, 10, 50, 50), (290, 10, None, 40)],
)
def test_a_block_counts_a_short_epoch_whole_and_of_others_what_follows_a_warm_up(
    first_ms: int, step_ms: int, epoch_steps: int | None, steps: int
) -> None:
    block = timed(first_ms, step_ms, epoch_steps)
    assert (block.first_ns, block.steps, block.elapsed_ns) == (
        first_ms * MS,
        steps,
        steps * step_ms * MS,
    )
