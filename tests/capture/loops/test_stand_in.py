from __future__ import annotations

from collections.abc import Callable

import pytest

from pipediag.capture.loops.loop import Stage, StandIn


def fresh() -> StandIn:
    return StandIn()


def catching() -> StandIn:
    stand_in = StandIn()
    stand_in.catch()
    return stand_in


def repeated() -> StandIn:
    stand_in = catching()
    stand_in.caught("repeated")
    return stand_in


def arm() -> StandIn:
    stand_in = StandIn()
    stand_in.lend("arm")
    return stand_in


EVERY_STAGE = pytest.mark.parametrize("made", [fresh, catching, repeated, arm])


@pytest.mark.parametrize(
    ("made", "stage", "asked"),
    [
        (fresh, Stage.OWN, "own"),
        (catching, Stage.CATCHING, "own"),
        (repeated, Stage.REPEATED, "repeated"),
        (arm, Stage.ARM, "arm"),
    ],
)
def test_each_stage_says_who_hands_out(
    made: Callable[[], StandIn], stage: Stage, asked: str
) -> None:
    stand_in = made()

    assert (stand_in.stage, stand_in.asked("own")) == (stage, asked)


def test_a_batch_that_can_not_be_repeated_leaves_the_scripts_own_iterator() -> None:
    stand_in = catching()
    stand_in.caught(None)

    assert (stand_in.stage, stand_in.asked("own")) == (Stage.OWN, "own")


@EVERY_STAGE
def test_the_next_batch_is_caught_from_the_scripts_own_iterator(
    made: Callable[[], StandIn],
) -> None:
    stand_in = made()
    stand_in.catch()

    assert (stand_in.stage, stand_in.asked("own")) == (Stage.CATCHING, "own")


@EVERY_STAGE
def test_an_arm_takes_the_place_of_whatever_was_there(made: Callable[[], StandIn]) -> None:
    stand_in = made()
    stand_in.lend("another arm")

    assert (stand_in.stage, stand_in.asked("own")) == (Stage.ARM, "another arm")


@EVERY_STAGE
def test_given_back_once_or_twice_the_scripts_own_iterator_hands_out(
    made: Callable[[], StandIn],
) -> None:
    stand_in = made()
    for _ in range(2):
        stand_in.give_back()
        assert (stand_in.stage, stand_in.asked("own")) == (Stage.OWN, "own")


def test_an_iterator_that_is_empty_still_stands_in() -> None:
    empty: list[int] = []
    stand_in = StandIn()
    stand_in.lend(empty)

    assert stand_in.asked("own") is empty
