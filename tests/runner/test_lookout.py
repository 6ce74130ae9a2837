from __future__ import annotations

from pipediag.runner.lookout import TELL_AFTER_S, Awaited, Lookout
from pipediag.runner.progress import LooksFurther, NoLoopYet, NotWarmYet
from pipediag.session.messages import (
    FromChild,
    LoopFound,
    LoopMeasured,
    Started,
    Stopping,
    TrialsAwaited,
    WindowBegun,
)


class Stage:
    """A clock, and messages of a child."""

    def __init__(self, *messages: FromChild) -> None:
        self.now = 100.0
        self.lookout = Lookout(lambda: self.now)
        for message in messages:
            self.lookout.heard(message)

    def after(self, seconds: float) -> Awaited | None:
        self.now += seconds
        return self.lookout.to_be_told()


def test_what_is_waited_for_is_told_once() -> None:
    stage = Stage(Started())
    assert stage.after(TELL_AFTER_S - 1) is None
    assert stage.after(2) == NoLoopYet()
    assert stage.after(1000) is None


def test_a_loop_whose_steps_do_not_settle_is_told_of() -> None:
    """Also where it was told before that none had come."""
    stage = Stage(Started())
    assert stage.after(TELL_AFTER_S + 1) == NoLoopYet()
    stage.lookout.heard(LoopFound(3))
    assert stage.after(TELL_AFTER_S - 1) is None
    assert stage.after(2) == NotWarmYet(3)
    assert stage.after(1000) is None


def test_while_a_loop_is_measured_nothing_is_told() -> None:
    assert Stage(Started(), LoopFound(3), WindowBegun("baseline")).after(1000) is None


def test_a_script_that_goes_on_after_its_loop_is_told_of() -> None:
    stage = Stage(Started(), LoopFound(3), WindowBegun("baseline"), LoopMeasured(3))
    assert stage.after(TELL_AFTER_S + 1) == LooksFurther(3)
    assert stage.after(1000) is None


def test_trials_are_told_of_by_themselves() -> None:
    waiting = TrialsAwaited("loop1", alone=False, more_to_come=True, since_ns=0)
    stage = Stage(Started(), LoopFound(3), LoopMeasured(3), waiting)
    assert stage.after(1000) is None
    stage.lookout.trials_over()
    assert stage.after(TELL_AFTER_S - 1) is None
    assert stage.after(2) == LooksFurther(3)


def test_a_script_that_is_stopped_is_waited_for_by_somebody_else() -> None:
    assert Stage(Started(), LoopMeasured(3), Stopping()).after(1000) is None


def test_before_the_script_runs_nothing_is_told() -> None:
    assert Stage().after(1000) is None
