"""Intervals by resampling, and shares that are clearly apart."""

from __future__ import annotations

import tracemalloc

import numpy as np

from pipediag.measures.bootstrap import interval, resampled_means, resampled_medians, resampled_rows


def test_rows_are_runs_of_neighbours_that_wrap_at_the_end() -> None:
    rows = np.array(list(resampled_rows(27, draws=5)))
    assert rows.shape == (5, 27)
    runs = rows.reshape(5, 9, 3)
    assert ((runs[:, :, 1:] - runs[:, :, :-1]) % 27 == 1).all()


def test_many_steps_take_no_table_of_all_draws() -> None:
    values = np.arange(100_000.0)
    tracemalloc.start()
    try:
        interval(resampled_means(values))
        assert tracemalloc.get_traced_memory()[1] < 40 * values.nbytes
    finally:
        tracemalloc.stop()


def test_an_outlier_moves_the_mean_and_not_the_median() -> None:
    values = [10.0] * 50 + [1000.0]
    assert interval(resampled_medians(values)) == (10.0, 10.0)
    assert interval(resampled_means(values))[1] > 10.0
