from __future__ import annotations

import math

import pytest

from pipediag.library.intervals.duration import seconds_of


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30m", 1800.0),
        ("30 min", 1800.0),
        ("90s", 90.0),
        ("90", 90.0),
        ("1.5h", 5400.0),
        (" 2D ", 172800.0),
        (45, 45.0),
        (0.5, 0.5),
    ],
)
def test_a_time_as_people_write_it(written: str | float, seconds: float) -> None:
    assert seconds_of(written) == seconds


@pytest.mark.parametrize(
    "written",
    ["", "m", "30 parsecs", "-5m", "0s", "1e3s", "3\u0660m", "9" * 40, 0, -1.0, math.inf, math.nan],
)
def test_what_is_no_time_is_refused_with_what_would_be_one(written: str | float) -> None:
    with pytest.raises(ValueError, match=r"every is .*; it is a time, such as '30m', '2h'"):
        seconds_of(written)
