from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pipediag.history.change_points import FEWEST, _ranks, change_points


def noisy(*levels: tuple[float, int], spread: float = 0.02, seed: int = 3) -> list[float]:
    random = np.random.default_rng(seed)
    means = np.concatenate([np.full(count, level) for level, count in levels])
    return list(means * (1.0 + random.normal(0.0, spread, len(means))))


def test_a_step_is_found_where_it_is() -> None:
    assert change_points(noisy((10.0, 12), (12.0, 12))) == [12]


def test_there_and_back_are_two_places() -> None:
    assert change_points(noisy((10.0, 20), (13.0, 20), (10.0, 20))) == [20, 40]


def test_one_odd_measurement_is_no_new_level() -> None:
    values = noisy((10.0, 24))
    values[12] = 100.0
    assert change_points(values) == []


@pytest.mark.parametrize("count", [0, 1, 2 * FEWEST - 1])
def test_too_few_measurements_say_nothing(count: int) -> None:
    assert change_points([10.0] * (count // 2) + [50.0] * (count - count // 2)) == []


def test_nothing_moves_where_all_is_equal() -> None:
    assert change_points([10.0] * 50) == []


def test_the_ranks_are_those_of_all_pairs() -> None:
    values = np.asarray([3.0, 1.0, 3.0, 2.0, 1.0, 1.0])
    pairs = np.sign(values[:, None] - values[None, :]).sum(axis=1)
    assert list(2.0 * _ranks(values) - (len(values) + 1)) == list(pairs)


def test_a_long_series_takes_no_table_of_all_pairs() -> None:
    values = noisy((10.0, 5_000), (12.0, 5_000))
    tracemalloc.start()
    try:
        assert change_points(values) == [5_000]
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()


def test_stairs_of_ten_thousand_are_climbed_without_an_end_of_the_stack() -> None:
    """Each place that is found is asked again on both of its sides."""
    found = change_points([float(at) for at in range(10_000)])
    assert found
    widths = np.diff([0, *found, 10_000])
    assert min(widths) >= FEWEST
    # What is left has no room for two levels that differ for sure.
    assert max(widths) < 20


def test_noise_alone_moves_next_to_nothing() -> None:
    said = [bool(change_points(noisy((10.0, 30), seed=seed))) for seed in range(500)]
    assert sum(said) <= 5
