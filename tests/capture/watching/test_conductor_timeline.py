"""What the conductor tells the timeline, with hand-overs told by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Loop
from tests.capture.watching.conductors import Stage


def test_the_timeline_is_told_of_runs_of_steps_and_of_no_single_one(stage: Stage) -> None:
    consumer = stage.consumer("training")
    for _ in range(3):
        stage.step(consumer)
    stage.conductor.epoch_ended()
    stage.conductor.epoch_ended()
    stage.step(consumer)

    assert stage.timeline.told == [("handed", "loop0"), ("ended", ""), ("handed", "loop0")]


def test_the_timeline_is_told_whether_a_step_asks_for_its_batch_itself(stage: Stage) -> None:
    consumer = stage.consumer("training")
    stage.conductor.call_begins(consumer, iterator=None)
    stage.conductor.call_begins(consumer, iterator=None)
    stage.conductor.exhausted(consumer)

    assert stage.timeline.told == [("called", "loop0"), ("ended", "")]


def test_the_timeline_is_told_when_another_loop_has_its_turn(stage: Stage) -> None:
    one, other = stage.consumer("training"), stage.consumer("validation")
    stage.step(one)
    stage.step(other)
    stage.step(one)
    stage.conductor.script_over("the script finished")

    turns = [("handed", "loop0"), ("ended", ""), ("handed", "loop1"), ("ended", "")]
    assert stage.timeline.told == [*turns, ("handed", "loop0"), ("ended", "")]


class FakeHeld:
    """Holds a loop until it is told to let go."""

    def __init__(self, loop: Loop) -> None:
        self.loop: Loop | None = loop
        self.goes_on = True

    def boundary(self, *_: Any) -> bool:
        return self.goes_on


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_timeline_is_told_that_trials_are_no_part_of_the_script(
    stage: Stage, interrupted: bool
) -> None:
    consumer = stage.consumer("training")
    stage.step(consumer)
    held: Any = FakeHeld(consumer.loop)
    stage.conductor._held = held
    stage.step(consumer)
    stage.step(consumer)
    assert stage.timeline.told == [("handed", "loop0")]
    if interrupted:
        stage.conductor.epoch_ended()
    held.loop = None
    stage.step(consumer)

    between = [("ended", "")] if interrupted else []
    expected = [("handed", "loop0"), *between, ("aside", ""), ("handed", "loop0")]
    assert stage.timeline.told == expected


def test_the_timeline_is_told_of_trials_that_end_within_a_step(stage: Stage) -> None:
    consumer = stage.consumer("training")
    stage.step(consumer)
    held: Any = FakeHeld(consumer.loop)
    stage.conductor._held = held
    stage.conductor.diagnosing._stopping = SimpleNamespace(go_on_or_stop=lambda _: None)  # type: ignore[assignment]
    held.goes_on = False
    stage.step(consumer)

    assert stage.timeline.told == [("handed", "loop0"), ("aside", "")]


def test_the_timeline_is_closed_when_the_script_is_stopped(stage: Stage) -> None:
    stage.step(stage.consumer("training"))
    with pytest.raises(StopScript):
        stage.conductor.stopping.stop()

    assert stage.timeline.told[-1] == ("closed", "")
