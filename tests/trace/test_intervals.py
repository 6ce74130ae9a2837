from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipediag.trace.intervals import (
    EMPTY,
    Intervals,
    clip,
    covered,
    gaps,
    intersect,
    normalise,
    subtract,
    total,
    union,
    without_earlier,
)

END = 40
pairs = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=12)
times = st.integers(0, END)


def as_set(rows: list[tuple[int, int]]) -> set[int]:
    """The reference: every whole nanosecond that a pair covers."""
    return {tick for start, end in rows for tick in range(start, end)}


def build(rows: list[tuple[int, int]]) -> Intervals:
    return normalise([row[0] for row in rows], [row[1] for row in rows])


def ticks(intervals: Intervals) -> set[int]:
    return as_set([(int(start), int(end)) for start, end in intervals])


def assert_is_normal(intervals: Intervals) -> None:
    assert intervals.shape[1] == 2
    assert (intervals[:, 0] < intervals[:, 1]).all()
    assert (intervals[1:, 0] > intervals[:-1, 1]).all()


@given(pairs)
def test_normalise_keeps_what_is_covered(rows: list[tuple[int, int]]) -> None:
    built = build(rows)
    assert_is_normal(built)
    assert ticks(built) == as_set(rows)
    assert total(built) == len(as_set(rows))


@given(pairs, pairs)
def test_set_operations(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    for operation, expected in (
        (union, as_set(a) | as_set(b)),
        (intersect, as_set(a) & as_set(b)),
        (subtract, as_set(a) - as_set(b)),
    ):
        result = operation(build(a), build(b))
        assert_is_normal(result)
        assert ticks(result) == expected


@given(st.lists(pairs, max_size=4))
def test_where_several_sets_hold_the_first_takes_it(several: list[list[tuple[int, int]]]) -> None:
    taken: set[int] = set()
    for rows, own in zip(several, without_earlier(map(build, several)), strict=True):
        assert_is_normal(own)
        assert ticks(own) == as_set(rows) - taken
        taken |= as_set(rows)


@given(pairs, times, times)
def test_clip_and_gaps_share_a_window(a: list[tuple[int, int]], start: int, end: int) -> None:
    window = as_set([(start, end)])
    assert ticks(clip(build(a), start, end)) == as_set(a) & window
    assert ticks(gaps(build(a), start, end)) == window - as_set(a)


@given(pairs, st.lists(st.tuples(times, times).map(sorted).map(tuple), max_size=6))
def test_covered_counts_each_window_by_itself(
    a: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    array = np.array(windows, np.int64).reshape(-1, 2)
    expected = [len(as_set(a) & as_set([window])) for window in windows]
    assert covered(build(a), array).tolist() == expected


def test_touching_intervals_become_one() -> None:
    assert normalise([5, 0], [9, 5]).tolist() == [[0, 9]]


def test_nothing_at_all() -> None:
    assert union().tolist() == []
    assert total(EMPTY) == 0
    assert subtract(EMPTY, normalise([1], [2])).tolist() == []
    assert intersect(normalise([1], [2]), EMPTY).tolist() == []
