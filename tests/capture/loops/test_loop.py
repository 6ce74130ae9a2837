"""A loop's clock, with hand-overs told by hand, and what stands in for its iterators."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipediag.capture.loops.loop import LoopClock, Stage, StandIn
from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam
from tests.recordings import make_recorded_loop


@pytest.mark.parametrize(
    ("taken", "stage", "asked"),
    [
        (lambda _: None, Stage.OWN, "own"),
        (lambda stand_in: stand_in.catch(), Stage.CATCHING, "own"),
        (lambda stand_in: stand_in.caught("repeated"), Stage.REPEATED, "repeated"),
        (lambda stand_in: stand_in.lend("arm"), Stage.ARM, "arm"),
    ],
)
def test_each_stage_says_who_hands_out_until_the_place_is_given_back(
    taken: Callable[[StandIn], None], stage: Stage, asked: str
) -> None:
    stand_in = StandIn()
    taken(stand_in)
    assert (stand_in.stage, stand_in.asked("own")) == (stage, asked)
    stand_in.give_back()
    assert (stand_in.stage, stand_in.asked("own")) == (Stage.OWN, "own")


@pytest.fixture
def record() -> RecordedLoop:
    return make_recorded_loop(steps=0, elapsed_ns=0)


def test_batches_asked_for_by_python_are_waited_for_between_the_epochs(
    record: RecordedLoop,
) -> None:
    clock = LoopClock(record)
    clock.hand_over(100, 60, continuous=False)
    clock.hand_over(200, 5, continuous=True)
    clock.hand_over(210, 5, continuous=True)
    clock.interrupted(220, ended_a_step=True)
    clock.hand_over(300, 50, continuous=False)
    clock.hand_over(310, 5, continuous=True)

    assert (record.asked_ns, record.warm_ns, record.last_ns) == (40, 200, 310)
    assert record.epoch_seams == [RecordedSeam(220, 250, 300)]
    assert record.warm_steps == 3


@pytest.mark.parametrize(("kind", "making"), [("eager", 16), ("keras", 20)])
def test_iterators_made_ahead_of_an_epoch_are_told_apart(kind: str, making: int) -> None:
    """Where Keras asks behind them, that the former one goes is a part of it."""
    record = make_recorded_loop(kind=kind, steps=0, elapsed_ns=0)
    clock = LoopClock(record)
    clock.made(10, 90)
    for now in (100, 200, 210):
        clock.hand_over(now, None, continuous=now > 100)
    clock.interrupted(211, ended_a_step=False)
    clock.made(215, 221)
    clock.made(230, 240)
    clock.hand_over(244, None, continuous=False)
    clock.interrupted(250, ended_a_step=False)
    clock.hand_over(260, None, continuous=False)

    assert [seam.making_ns for seam in record.epoch_seams] == [making, 0]


def test_what_keras_does_as_it_leaves_an_epoch_is_none_of_what_lies_between_two() -> None:
    """The next iterator is made then, which waits behind validation, or the last one goes."""
    record = make_recorded_loop(kind="keras", steps=0, elapsed_ns=0)
    clock = LoopClock(record)
    for now in (100, 200, 210):
        clock.hand_over(now, None, continuous=now > 100)
    clock.made(213, 218)
    clock.interrupted(211, ended_a_step=True)
    clock.left(211, 221)
    clock.epoch_begins(290)
    clock.hand_over(300, None, continuous=False)
    clock.interrupted(311, ended_a_step=True)
    clock.left(311, 314)
    clock.epoch_begins(380)
    clock.made(382, 384)
    clock.hand_over(400, None, continuous=False)
    clock.interrupted(411, ended_a_step=True)
    clock.left(411, 412)
    clock.epoch_begins(490)
    clock.hand_over(500, None, continuous=False)

    assert [seam.making_ns for seam in record.epoch_seams] == [10 + 10, 3 + 2 + 16, 1]


def test_a_call_that_asks_for_its_batch_holds_the_wait(record: RecordedLoop) -> None:
    clock = LoopClock(record)
    for now in (100, 200, 210, 220):
        clock.hand_over(now, None, continuous=now > 100)
    # The call at 220 has found no batch.
    clock.interrupted(221, ended_a_step=False)
    for now in (250, 290, 300):
        clock.hand_over(now, None, continuous=now > 250)

    assert record.epoch_seams == [RecordedSeam(221, 250, None, first_step_ns=40)]
    assert record.warm_steps == 4


def test_an_epoch_s_first_call_that_traces_does_not_tell_its_wait(record: RecordedLoop) -> None:
    """As the first one of each fold, where the model is built anew."""
    clock = LoopClock(record)
    for now in (100, 200, 210):
        clock.hand_over(now, None, continuous=now > 100)
    clock.interrupted(211, ended_a_step=False)
    clock.hand_over(250, None, continuous=False)
    clock.traced()
    clock.hand_over(900, None, continuous=True)
    clock.interrupted(901, ended_a_step=False)
    for now in (940, 980):
        clock.hand_over(now, None, continuous=now > 940)

    assert [seam.first_step_ns for seam in record.epoch_seams] == [None, 40]


def test_trials_and_our_own_work_are_set_aside(record: RecordedLoop) -> None:
    clock = LoopClock(record)
    clock.set_aside(7)
    for now in (100, 200, 210):
        clock.hand_over(now, 1, continuous=now > 100)
    clock.set_aside(4)
    clock.interrupted(211, ended_a_step=True)
    clock.held()
    clock.hand_over(900, 1, continuous=False)
    clock.hand_over(910, 1, continuous=True)

    assert record.epoch_seams == []
    assert record.set_aside_ns == 4 + (899 - 210)


def test_no_more_seams_are_kept_than_tell_something(record: RecordedLoop) -> None:
    clock = LoopClock(record)
    for now in range(0, 20_000, 10):
        clock.hand_over(now, 1, continuous=now % 20 == 10)
        if now % 20 == 10:
            clock.interrupted(now + 5, ended_a_step=True)

    assert len(record.epoch_seams) == 512
