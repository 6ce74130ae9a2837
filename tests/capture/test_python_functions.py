from __future__ import annotations

import functools
from typing import Any

import pytest

from pipediag.capture.callsites import source_location, unwrap


def plain(x: int) -> int:
    return x


@functools.wraps(plain)
def decorated(*args: Any) -> int:
    return plain(*args)


class Traced:
    """Looks like a tf.function."""

    python_function = staticmethod(plain)

    def __call__(self, *args: Any) -> int:
        return plain(*args)


class Callable:
    def __call__(self, x: int) -> int:
        return x

    def method(self, x: int) -> int:
        return x


class WrappingItself:
    @property
    def __wrapped__(self) -> WrappingItself:
        return self


@pytest.mark.parametrize(
    "function",
    [
        plain,
        decorated,
        functools.partial(plain, 1),
        functools.partial(functools.partial(decorated), 1),
        functools.lru_cache(plain),
        Traced(),
        functools.partial(Traced()),
    ],
)
def test_the_plain_function_is_found(function: Any) -> None:
    assert unwrap(function) is plain


def test_methods_and_callable_objects() -> None:
    assert unwrap(Callable().method) is Callable.method
    assert unwrap(Callable()) is Callable.__call__


@pytest.mark.parametrize("thing", [len, None, 3, "text"])
def test_things_without_python_code_stay_as_they_are(thing: Any) -> None:
    assert unwrap(thing) is thing


def test_a_circle_of_wrappers_ends() -> None:
    circle = WrappingItself()

    assert unwrap(circle) is circle


def test_location() -> None:
    line = plain.__code__.co_firstlineno

    assert source_location(functools.partial(plain, 1)) == f"{__file__}:{line} plain"
    assert source_location(len) == "len"
