from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.reporters.perfetto.originals import MOST_LANES, nesting_lanes


def lanes_of(*spans: tuple[int, int]) -> list[int]:
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    return nesting_lanes(starts, ends).tolist()


@pytest.mark.parametrize(
    ("spans", "lanes"),
    [
        ([], []),
        ([(0, 5), (5, 9), (9, 9)], [0, 0, 0]),
        ([(0, 10), (0, 4), (1, 3), (4, 10)], [0, 0, 0, 0]),
        ([(0, 5), (3, 8), (6, 9)], [0, 1, 0]),
        ([(0, 5), (1, 6), (2, 7)], [0, 1, 2]),
    ],
)
def test_events_that_cross_go_to_another_lane(
    spans: list[tuple[int, int]], lanes: list[int]
) -> None:
    assert lanes_of(*spans) == lanes


def test_there_is_an_end_to_lanes() -> None:
    spans = [(start, start + 1_000) for start in range(100)]

    assert max(lanes_of(*spans)) == MOST_LANES - 1


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=MOST_LANES))
def test_on_one_lane_events_nest_or_are_disjoint(found: list[tuple[int, int]]) -> None:
    spans = sorted(((min(pair), max(pair)) for pair in found), key=lambda s: (s[0], -s[1]))
    lanes = lanes_of(*spans)

    for later, (start, end) in enumerate(spans):
        for earlier, (before, after) in enumerate(spans[:later]):
            if lanes[earlier] == lanes[later]:
                assert after <= start or (before <= start and end <= after)
