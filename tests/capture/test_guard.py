"""What a hook does where ours fails, where the original does, and in a forked child."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.process import is_of_a_signal_handler, let_pass


class OursError(Exception):
    """An error of pipediag."""


class UsersError(Exception):
    """An error of the script."""


def breaks() -> None:
    raise OursError


class Stop(BaseException):
    """Raised by us on purpose."""


class Stage:
    def __init__(self) -> None:
        self.notes: list[str] = []
        self.guard = Guard(self.notes.append)
        self.calls: list[str] = []
        self.fails: BaseException | None = None
        begins = self.guard.entry("counting doublings", self.begins, lambda number: number)
        ended = self.guard.entry("ending doublings", self.ended, vital=True)

        def ours(number: int) -> int:
            seen = begins(number)
            try:
                return self.double(seen)
            finally:
                ended(seen)

        self.hooked = self.guard.hook(self.double, ours)

    def double(self, number: int) -> int:
        self.calls.append("original")
        if number < 0:
            raise UsersError("negative")
        return 2 * number

    def begins(self, number: int) -> int:
        self.calls.append("begins")
        if self.fails is not None:
            raise self.fails
        return number

    def ended(self, number: int) -> None:
        self.calls.append("ended")
        if number == 13:
            raise OursError("unlucky")


def test_an_error_of_ours_is_noted_once_and_its_entry_steps_aside() -> None:
    stage = Stage()
    stage.fails = OursError("a\n number")
    assert [stage.hooked(4), stage.hooked(5)] == [8, 10]
    assert stage.calls == ["begins", "original", "ended", "original", "ended"]
    assert stage.notes == [
        "Pipediag stopped counting doublings after an error of its own, which the script did not "
        "see: OursError: a number"
    ]
    assert not stage.guard.aside


def test_an_error_in_what_must_not_be_missing_lets_all_step_aside() -> None:
    stage = Stage()
    ended: list[str] = []
    first, last = (lambda one=one: ended.append(one) for one in ("first", "last"))
    stage.guard.when("given up", first, breaks, last)
    assert [stage.hooked(13), stage.hooked(4)] == [26, 8]
    assert stage.calls == ["begins", "original", "ended", "original"]
    assert (stage.guard.aside, ended) == (True, ["first", "last"])
    assert [note.split(" after ")[0] for note in stage.notes] == [
        "Pipediag stopped ending doublings",
        "Pipediag stopped closing what was open",
    ]


def test_an_error_of_the_script_and_a_stop_of_ours_pass() -> None:
    stage = Stage()
    with pytest.raises(UsersError, match="negative"):
        stage.hooked(-1)
    assert stage.calls == ["begins", "original", "ended"]
    stage.fails = Stop()
    with pytest.raises(Stop):
        stage.hooked(4)
    assert stage.notes == []


def said_by_a_child(says: Callable[[], object]) -> str:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, str(says()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return text


def test_in_a_forked_child_every_hook_is_its_original() -> None:
    stage = Stage()
    undone: list[str] = []
    stage.guard.when("forked", lambda: undone.append("waiting"))
    stage.guard.watch_forks()
    said = said_by_a_child(lambda: [stage.hooked(13), stage.calls, undone, stage.notes])
    assert said == "[26, ['original'], ['waiting'], []]"
    assert stage.hooked(4) == 8
    assert stage.calls == ["begins", "original", "ended"]


def test_what_must_not_run_while_the_process_is_copied_stands_back() -> None:
    stage = Stage()
    told: list[str] = []
    stage.guard.when("before fork", lambda: told.append("before"), breaks)
    stage.guard.when("after fork", lambda: told.append("after"), lambda: told.append("again"))
    stage.guard.watch_forks()
    assert said_by_a_child(lambda: told) == "['before']"
    assert told == ["before", "after", "again"]
    assert [note.split(" after ")[0] for note in stage.notes] == [
        "Pipediag stopped standing back from a fork"
    ]


def test_what_is_dismissed_is_its_original_and_holds_on_to_nothing() -> None:
    stage = Stage()
    stage.guard.when("forked", lambda: stage.calls.append("undone"))
    stage.guard.when("before fork", lambda: stage.calls.append("before"))
    stage.guard.when("after fork", lambda: None)
    stage.guard.watch_forks()
    stage.guard.dismiss()
    assert stage.hooked(4) == 8
    assert said_by_a_child(lambda: stage.calls) == "['original']"
    assert stage.calls == ["original"]
    assert stage.guard.entries == []


class TimeIsUpError(Exception):
    """Raised by a handler of the script's."""


@pytest.fixture
def interrupted() -> Iterator[Callable[[Any], Exception]]:
    def raised(handler: Any) -> Exception:
        signal.signal(signal.SIGUSR1, handler)
        try:
            os.kill(os.getpid(), signal.SIGUSR1)
        except TimeIsUpError as error:
            return error
        raise AssertionError

    usual = signal.getsignal(signal.SIGUSR1)
    yield raised
    signal.signal(signal.SIGUSR1, usual)


def handler_that_raises(*_: Any) -> None:
    raise TimeIsUpError


class Handles:
    def method(self, *_: Any) -> None:
        raise TimeIsUpError

    def __call__(self, *_: Any) -> None:
        raise TimeIsUpError


HANDLERS = [
    handler_that_raises,
    Handles().method,
    Handles(),
    functools.partial(handler_that_raises, 1),
]


@pytest.mark.parametrize("handler", HANDLERS)
def test_what_a_handler_raises_is_the_scripts(
    handler: Any, interrupted: Callable[[Any], Exception]
) -> None:
    error = interrupted(handler)
    assert isinstance(error, TimeIsUpError)
    assert is_of_a_signal_handler(error)
    with pytest.raises(TimeIsUpError) as passed:
        let_pass(error)
    assert passed.value is error


def test_what_a_handler_was_called_in_the_middle_of_is_not(
    interrupted: Callable[[Any], Exception],
) -> None:
    def before() -> None:
        with pytest.raises(TimeIsUpError):
            raise interrupted(handler_that_raises)
        raise ValueError

    with pytest.raises(ValueError) as raised:  # noqa: PT011
        before()
    let_pass(raised.value)
    assert not is_of_a_signal_handler(raised.value)
