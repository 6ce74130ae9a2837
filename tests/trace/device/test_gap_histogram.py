from __future__ import annotations

import numpy as np
import pytest

from pipediag.trace.device.gap_histogram import LengthBucket, gap_histogram


def test_a_length_on_an_edge_is_in_the_bucket_above() -> None:
    lengths = np.array([4_999, 5_000, 9_999, 10_000, 99_999_999, 100_000_000])
    assert gap_histogram(lengths, 5_000) == (
        LengthBucket(0, 5_000, 1, 4_999),
        LengthBucket(5_000, 10_000, 2, 14_999),
        LengthBucket(10_000, 100_000, 1, 10_000),
        LengthBucket(10_000_000, 100_000_000, 1, 99_999_999),
        LengthBucket(100_000_000, None, 1, 100_000_000),
    )


@pytest.mark.parametrize("floor_ns", [0, 7, 10_000, 500_000_000])
def test_every_gap_and_nanosecond_is_in_one_bucket(floor_ns: int) -> None:
    lengths = np.array([1, 10, 10_000, 77_777, 3_000_000, 9_000_000_000])
    buckets = gap_histogram(lengths, floor_ns)
    assert sum(bucket.count for bucket in buckets) == len(lengths)
    assert sum(bucket.total_ns for bucket in buckets) == lengths.sum()
    for bucket in buckets:
        inside = lengths[(lengths >= bucket.from_ns) & (lengths < (bucket.to_ns or 10**18))]
        assert (bucket.count, bucket.total_ns) == (len(inside), inside.sum())


def test_no_gaps_fill_no_bucket() -> None:
    assert gap_histogram(np.empty(0, np.int64), 5_000) == ()
