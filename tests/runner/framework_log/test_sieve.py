from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.runner.framework_log.sieve import MOST_HELD, Sieve

NOISE = b"I0000 00:00:1795433364.718086   31060 port.cc:153] oneDNN custom operations are on."
GUARD = b"2026-11-23 10:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:227] This"
SECOND = b"To enable the following instructions: AVX2 FMA"
BAR = b"\r 10%|#   | 1/10 [00:01]"

KNOWN = (b"WARNING: All log", b"To enable the", b"Skipping reg", b"\t [[")
OTHER = st.binary(max_size=200).filter(lambda text: not any(known in text for known in KNOWN))
"""Hypothesis takes constants of the module for examples."""


class Sifted:
    """What came of some pieces, in the order they came in."""

    def __init__(self, *pieces: bytes) -> None:
        self.folded: list[bytes] = []
        self.sieve = Sieve(self.folded.append)
        self.passed = b"".join(map(self.sieve.feed, pieces))


def test_lines_of_the_framework_are_taken_out_and_nothing_else() -> None:
    text = b"a\n" + GUARD + b"\n" + SECOND + b"\nb\n" + NOISE + b"\n" + SECOND[:9] + b"\n\xff\x00c"
    sifted = Sifted(text)

    assert sifted.passed == b"a\nb\n" + SECOND[:9] + b"\n\xff\x00c"
    assert sifted.folded == [GUARD, SECOND, NOISE]


@pytest.mark.parametrize("first", range(1, 130))
def test_it_does_not_matter_where_a_read_ends(first: int) -> None:
    text = b"prompt? yes\n" + NOISE + b"\nx\r\ny\n" + GUARD + b"\n" + SECOND + b"\nIn all\n2"

    sifted = Sifted(text[:first], text[first : first + 40], text[first + 40 :])

    assert sifted.passed + sifted.sieve.give_up() == b"prompt? yes\nx\r\ny\nIn all\n2"
    assert sifted.folded == [NOISE, GUARD, SECOND]


def test_a_line_written_behind_a_progress_bar_leaves_the_bar() -> None:
    sifted = Sifted(BAR, NOISE + b"\n", BAR, BAR + NOISE + b"\n" + BAR, b"\ndone\n")

    assert sifted.passed == BAR + BAR + BAR + BAR + b"\ndone\n"
    assert sifted.folded == [NOISE, NOISE]


@pytest.mark.parametrize("start", [b"Continue? ", BAR, b"\xff\xfe", b"In", b"W1", b"20 %"])
def test_what_begins_otherwise_passes_at_once(start: bytes) -> None:
    sifted = Sifted(start)

    assert sifted.passed == start
    assert not sifted.sieve.holds


@pytest.mark.parametrize("start", [b"I", b"20", NOISE, GUARD[:30]])
def test_what_may_be_a_line_of_the_framework_waits_until_it_is_given_up(start: bytes) -> None:
    sifted = Sifted(start)
    assert (sifted.passed, sifted.sieve.holds) == (b"", True)

    assert sifted.sieve.give_up() == start
    assert not sifted.sieve.holds
    assert sifted.sieve.feed(b" and more\nI") == b" and more\n"
    assert sifted.folded == []


def test_an_endless_line_is_not_held() -> None:
    sifted = Sifted(NOISE, b"x" * MOST_HELD)

    assert sifted.passed == NOISE + b"x" * MOST_HELD


@given(st.lists(OTHER | st.sampled_from([b"I", b"2", b"\n", b"\r", b"\t [["])))
def test_other_bytes_pass_as_they_are(pieces: list[bytes]) -> None:
    sifted = Sifted(*pieces)

    assert sifted.passed + sifted.sieve.give_up() == b"".join(pieces)


@given(OTHER, st.lists(st.integers(0, 600), max_size=5))
def test_lines_between_other_bytes_are_found_however_they_are_read(
    other: bytes, ends: list[int]
) -> None:
    other = other.replace(b"\r", b"") + b"\n"
    text = NOISE + b"\n" + other + NOISE + b"\n" + other
    bounds = [0, *sorted(min(end, len(text)) for end in ends), len(text)]

    sifted = Sifted(*(text[a:b] for a, b in pairwise(bounds)))

    assert sifted.passed == other + other
    assert sifted.folded == [NOISE, NOISE]
