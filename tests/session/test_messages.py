from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as some

from pipediag.session.messages import (
    COMMANDS,
    FROM_CHILD,
    Command,
    Ended,
    FromChild,
    Prepare,
    Started,
    decode,
    encode,
)

some.register_type_strategy(float, some.floats(allow_nan=False))
NO_MESSAGE = [b"", b"no json", b"[1]", b"1", b'"text"', b"null", b"{}", b"\xff", b'{"is": []}']


def there_and_back(kind: type, kinds: dict[str, Callable[..., Any]]) -> None:
    @given(some.from_type(kind))
    def comes_over(message: Any) -> None:
        line = encode(message)
        assert line.index(b"\n") == len(line) - 1
        assert decode(line, kinds) == message

    comes_over()


@pytest.mark.parametrize("kind", get_args(FromChild))
def test_what_a_child_tells_comes_over_as_it_was(kind: type) -> None:
    there_and_back(kind, FROM_CHILD)


@pytest.mark.parametrize("kind", get_args(Command))
def test_what_a_child_is_asked_comes_over_as_it_was(kind: type) -> None:
    there_and_back(kind, COMMANDS)


def test_a_name_that_is_no_unicode_comes_over() -> None:
    told = Ended("raised", 1, "no such file: caf\udce9")
    assert decode(encode(told), FROM_CHILD) == told


@pytest.mark.parametrize(
    "line",
    [
        b'{"is": "News"}',
        b'{"is": "Started", "with": "more"}',
        b'{"is": "Prepared"}',
        encode(Prepare("base", (), None)),
    ],
)
def test_what_the_parent_does_not_know_is_none(line: bytes) -> None:
    assert decode(line, FROM_CHILD) is None


@pytest.mark.parametrize(
    "line",
    [
        b'{"is": "Prepare", "arm": "a", "check": null, "changes": [{"do": "sing"}]}',
        b'{"is": "Prepare", "arm": "a", "check": null, "changes": [{"do": "remove"}]}',
        b'{"is": "Prepare", "arm": "a", "check": null, "changes": 1}',
        encode(Started()),
    ],
)
def test_what_the_child_does_not_know_is_none(line: bytes) -> None:
    assert decode(line, COMMANDS) is None
