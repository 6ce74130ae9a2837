from __future__ import annotations

import gzip
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace import compression
from pipediag.trace.compression import unpacked
from pipediag.trace.malformed import MalformedError, TooLargeError

NOISE = random.Random(7).randbytes(200_000)


@pytest.mark.parametrize("content", [b"", b"a", bytes(3 << 20), NOISE], ids=len)
def test_what_was_packed_is_unpacked(content: bytes) -> None:
    assert bytes(unpacked(memoryview(gzip.compress(content)))) == content


def test_members_follow_one_another_and_zeros_may_follow_them() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two") + bytes(20_000)
    assert bytes(unpacked(memoryview(packed))) == b"one two"


@given(st.integers(1, 200_000))
def test_cut_short_anywhere(cut: int) -> None:
    packed = gzip.compress(NOISE)
    with pytest.raises(MalformedError, match="cut short"):
        unpacked(memoryview(packed)[:-cut])


@pytest.mark.parametrize("place", [3, 50_000, -5])
def test_damaged(place: int) -> None:
    packed = bytearray(gzip.compress(NOISE))
    packed[place] ^= 0xFF
    with pytest.raises(MalformedError):
        unpacked(memoryview(packed))


def test_garbage_after_the_end_is_damage() -> None:
    with pytest.raises(MalformedError, match="damaged"):
        unpacked(memoryview(gzip.compress(b"content") + bytes(9) + b"more"))


def test_a_bomb_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST_UNPACKED_BYTES", 1 << 21)
    assert len(unpacked(memoryview(gzip.compress(bytes(1 << 21))))) == 1 << 21
    with pytest.raises(TooLargeError, match="more than 2 MiB"):
        unpacked(memoryview(gzip.compress(bytes((1 << 21) + 1))))


def test_a_bomb_of_many_members_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "MOST_MEMBERS", 100)
    with pytest.raises(TooLargeError, match="more than 100 pieces"):
        unpacked(memoryview(gzip.compress(b"") * 101))
