from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as some

from pipediag.capture.replay.replacing import boundaries_between


@given(
    lengths=some.lists(some.integers(1, 50), min_size=1, max_size=60),
    # Shares that a float holds exactly, so that NumPy does not round.
    buckets=some.sampled_from([2, 4, 8]),
)
def test_boundaries_lie_behind_the_lower_quantiles(lengths: list[int], buckets: int) -> None:
    quantiles = np.quantile(lengths, np.arange(1, buckets) / buckets, method="lower")
    expected = sorted({int(one) + 1 for one in quantiles if one < max(lengths)})
    assert boundaries_between(lengths, buckets) == expected


def test_four_buckets_share_the_lengths_evenly() -> None:
    assert boundaries_between(list(range(1, 9)), 4) == [3, 5, 7]


def test_a_share_that_a_float_would_round_down_is_exact() -> None:
    lengths = list(range(50))
    assert boundaries_between(lengths, 49)[0] == 2


def test_lengths_that_are_alike_have_no_boundary() -> None:
    assert boundaries_between([7] * 5, 4) == []


def test_without_lengths_there_is_no_boundary() -> None:
    assert boundaries_between([], 4) == []
