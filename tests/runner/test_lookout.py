from __future__ import annotations

from pipediag.runner.lookout import TELL_AFTER_S, Lookout
from pipediag.session.messages import FromChild, LoopFound, Started


class Stage:
    """A clock, and messages of a child."""

    def __init__(self, *messages: FromChild) -> None:
        self.now = 100.0
        self.lookout = Lookout(lambda: self.now)
        for message in messages:
            self.lookout.heard(message)

    def after(self, seconds: float) -> bool:
        self.now += seconds
        return self.lookout.has_to_be_told()


def test_what_is_waited_for_is_told_once() -> None:
    stage = Stage(Started())
    assert not stage.after(TELL_AFTER_S - 1)
    assert stage.after(2)
    assert not stage.after(1000)


def test_where_a_loop_was_found_nothing_is_told() -> None:
    assert not Stage(Started(), LoopFound(3)).after(1000)


def test_before_the_script_runs_nothing_is_told() -> None:
    assert not Stage().after(1000)
