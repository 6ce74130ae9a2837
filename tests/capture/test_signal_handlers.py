"""Whose an error is that came out of code of ours."""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipediag.capture.signals import is_of_a_signal_handler, let_pass


class TimeIsUpError(Exception):
    """Raised by a handler of the script's."""


@pytest.fixture
def interrupted() -> Iterator[Callable[[Any], Exception]]:
    """What comes out of code of ours that a signal interrupts."""

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


def plain(*_: Any) -> None:
    raise TimeIsUpError


def once(number: int, frame: Any) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise TimeIsUpError(frame.f_lineno)


def any_arguments(*given: Any) -> None:
    signal.signal(given[0], signal.SIG_DFL)
    plain()


class Handles:
    def method(self, number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise TimeIsUpError

    def __call__(self, *_: Any) -> None:
        raise TimeIsUpError


HANDLERS = [plain, once, any_arguments, Handles().method, Handles(), functools.partial(plain, 1)]


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
            raise interrupted(plain)
        raise ValueError

    with pytest.raises(ValueError) as raised:  # noqa: PT011
        before()
    let_pass(raised.value)
    assert not is_of_a_signal_handler(raised.value)


def test_a_function_that_is_told_a_number_is_no_handler() -> None:
    def told(number: int, *_: Any) -> None:
        raise ValueError(number)

    with pytest.raises(ValueError) as raised:  # noqa: PT011
        told(15, None)
    assert not is_of_a_signal_handler(raised.value)
