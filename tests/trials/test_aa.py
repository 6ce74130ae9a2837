from __future__ import annotations

import pytest

from benchmarks.aa import rates

TRIALS = 40


@pytest.mark.parametrize("noise", ["spiky", "sluggish"])
def test_an_edit_that_does_nothing_is_never_confirmed(noise: str) -> None:
    row = rates(noise, 0.03, 1.0, trials=TRIALS, edits=2, budget_s=60.0)
    assert row.trials == TRIALS
    assert row.confirmed_percent == 0.0
    # 5 % of 40 are 2; three standard deviations of that count are 4.
    assert row.truth_inside_percent >= 100.0 * (1.0 - 6.0 / TRIALS)


def test_an_edit_that_does_something_is_found_under_heavy_noise() -> None:
    row = rates("spiky", 0.1, 1.5, trials=20, edits=2, budget_s=60.0)
    assert row.confirmed_percent >= 90.0
