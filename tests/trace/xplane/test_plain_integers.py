from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.xplane.plain_integers import INT64, REFERENCE, UINT64, PlainIntegers
from pipediag.trace.xplane.varints import words_of
from tests.trace.xplane.wire import message, varint

BEFORE, BEHIND = b"\xff" * 8, b"\xff" * 24
STATISTICS = 4

values = st.integers(0, 63).flatmap(lambda bits: st.integers(1 << bits, (2 << bits) - 1))


def looked_at(written: bytes, cut: int = 0) -> PlainIntegers:
    """The one statistic in an event that ends `cut` bytes before it does."""
    data = np.frombuffer(BEFORE + written + BEHIND, np.uint8)
    start = len(BEFORE)
    end = start + len(written) - cut
    return PlainIntegers.at(words_of(data), np.array([start]), np.array([end]))


def statistic(key: bytes, tag: int, value: bytes) -> bytes:
    return message(STATISTICS, b"\x08" + key + bytes([tag]) + value)


@given(st.integers(0, 127), st.sampled_from((UINT64, INT64, REFERENCE)), st.just(0) | values)
def test_every_integer_behind_a_short_key(key: int, tag: int, value: int) -> None:
    written = statistic(bytes([key]), tag, varint(value))
    found = looked_at(written)
    assert found.sound.tolist() == [True]
    assert (found.keys.tolist(), found.tags.tolist()) == ([key], [tag])
    assert found.values.view(np.uint64).tolist() == [value]
    assert found.after.tolist() == [len(BEFORE) + len(written)]


@pytest.mark.parametrize(
    "written",
    [
        statistic(b"\x81\x01", INT64, varint(5)),
        statistic(b"\x05", 0x2A, varint(2) + b"ab"),
        statistic(b"\x05", 0x11, b"\x01" * 8),
        statistic(b"\x05", INT64, varint(300) + varint(4)),
        statistic(b"\x05", INT64, varint(5) + b"\x08\x06"),
        statistic(b"\x05", INT64, b"\x85"),
        statistic(b"\x05", INT64, b""),
        statistic(b"\x05", INT64, b"\x80" * 9 + b"\x02"),
        statistic(b"\x05", INT64, b"\x80" * 10 + b"\x01"),
        statistic(b"\x05", INT64, b"\x01" + b"\x80" * 8 + b"\x01"),
        message(5, b"\x08\x05\x20\x07"),
        message(STATISTICS, b"\x10\x05\x20\x07"),
    ],
    ids=[
        "a long key",
        "a text",
        "a double",
        "two values",
        "another key",
        "a value that goes on",
        "no value",
        "more than 64 bits",
        "more than ten bytes",
        "a value and one of nine bytes",
        "no statistic",
        "no key",
    ],
)
def test_what_is_of_another_form(written: bytes) -> None:
    assert not looked_at(written).sound.any()


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_what_reaches_over_its_event(cut: int) -> None:
    assert not looked_at(statistic(b"\x05", INT64, varint(300)), cut).sound.any()
