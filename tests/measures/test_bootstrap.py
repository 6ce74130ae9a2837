"""Intervals by resampling, and shares that are clearly apart."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from pipediag.measures.bootstrap import (
    DRAWS,
    interval,
    resampled_means,
    resampled_medians,
    resampled_rows,
)


def test_rows_are_runs_of_neighbours_that_wrap_at_the_end() -> None:
    rows = np.array(list(resampled_rows(27, draws=5)))
    assert rows.shape == (5, 27)
    runs = rows.reshape(5, 9, 3)
    assert ((runs[:, :, 1:] - runs[:, :, :-1]) % 27 == 1).all()


@pytest.mark.parametrize("count", [1, 2, 7, 100, 1_001])
def test_one_after_the_other_they_are_those_of_all_at_once(count: int) -> None:
    length = max(1, round(count ** (1 / 3)))
    runs = math.ceil(count / length)
    starts = np.random.default_rng(3).integers(0, count, size=(20, runs, 1))
    rows = ((starts + np.arange(length)) % count).reshape(20, -1)[:, :count]
    assert np.array_equal(np.array(list(resampled_rows(count, draws=20, seed=3))), rows)


def test_many_steps_take_no_table_of_all_draws() -> None:
    values = np.arange(100_000.0)
    tracemalloc.start()
    try:
        interval(resampled_means(values))
        assert tracemalloc.get_traced_memory()[1] < 40 * values.nbytes
    finally:
        tracemalloc.stop()


def test_one_step_resamples_to_itself() -> None:
    assert interval(resampled_means([4.0])) == (4.0, 4.0)


def test_the_same_values_give_the_same_interval() -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert interval(resampled_means(values)) == interval(resampled_means(values))


def test_a_table_keeps_its_columns_together() -> None:
    drawn = resampled_means(np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]))
    assert drawn.shape == (DRAWS, 2)
    assert drawn[:, 1] == pytest.approx(10 * drawn[:, 0])


def test_an_outlier_moves_the_mean_and_not_the_median() -> None:
    values = [10.0] * 50 + [1000.0]
    assert interval(resampled_medians(values)) == (10.0, 10.0)
    assert interval(resampled_means(values))[1] > 10.0
