"""No amount that is something is said as nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.facts.names import exact_time, memory_size, share, time_taken

NOTHING = re.compile(r"^0(\.0+)? ")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.04, "under 0.1 ms"),
        (0.25, "0.2 ms"),
        (41.6, "42 ms"),
        (999.4, "999 ms"),
        (999.7, "1.0 s"),
        (2100.0, "2.1 s"),
    ],
)
def test_times(ms: float, text: str) -> None:
    assert time_taken(ms) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1.0, "1 bytes"),
        (700 * 2**10, "700 KiB"),
        (42 * 2**20, "42 MiB"),
        (3.25 * 2**30, "3.2 GiB"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert memory_size(count) == text


@pytest.mark.parametrize(
    ("percent", "text"), [(0.0, "0 %"), (0.04, "under 0.1 %"), (34.14, "34.1 %")]
)
def test_shares(percent: float, text: str) -> None:
    assert share(percent) == text


@given(st.floats(min_value=1.0, max_value=1e14))
def test_something_is_never_nothing(value: float) -> None:
    assert not NOTHING.match(memory_size(value))
    assert not NOTHING.match(time_taken(value / 1e4))
    assert not NOTHING.match(share(min(100.0, value / 1e6)))


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0.31, "0.31 ms"), (17.66, "17.7 ms"), (999.4, "999 ms"), (1074.0, "1.07 s"), (60e3, "60 s")],
)
def test_three_digits_and_no_power_of_ten(ms: float, said: str) -> None:
    assert exact_time(ms) == said
