"""What mutation testing comes to, from outcomes made by hand; no mutant is run here."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.mutants import Score, markdown


def score(mutants: int, **outcomes: int) -> Score:
    return Score("gate", mutants, Counter({k.replace("_", " "): n for k, n in outcomes.items()}))


def test_what_no_test_reaches_is_not_killed() -> None:
    found = score(10, killed=6, timeout=1, segfault=1, survived=1, no_tests=1)
    assert (found.tried, found.killed, found.interval) == (10, 8, None)
    assert markdown([found]).splitlines()[-1] == "| `gate` | 10 | 10 | 8 | 1 | 1 | 80.0 % |"


def test_a_sample_has_an_interval() -> None:
    # Wilson's of 90 in 100, as tables have it.
    assert score(1000, killed=90, survived=10).interval == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert "90.0 % [82.6, 94.5]" in markdown([score(1000, killed=90, survived=10)])


def test_where_all_of_a_sample_were_killed_some_may_yet_survive() -> None:
    low, high = score(1000, killed=50).interval or (0.0, 0.0)
    assert low == pytest.approx(0.92866, abs=1e-5)
    assert high == pytest.approx(1.0)
