from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipediag.trace.intervals import Intervals, covered, intersect, normalise, subtract, union
from tests.trace.builder import TraceBuilder


def test_columns_are_absolute_nanoseconds_sorted_by_start(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python", timestamp_ns=1_000)
    line.event("later", 50, 60)
    line.event("inner", 10, 20)
    line.event("outer", 10, 40)
    read_line = builder.events(tmp_path).host_lines[0]
    assert read_line.start_ns.tolist() == [1_010, 1_010, 1_050]
    assert read_line.end_ns.tolist() == [1_040, 1_020, 1_060]
    assert [read_line.event_name(i) for i in range(3)] == ["outer", "inner", "later"]


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


@settings(max_examples=100)
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


@settings(max_examples=100)
@given(pairs, st.lists(st.tuples(times, times).map(sorted).map(tuple), max_size=6))
def test_covered_counts_each_window_by_itself(
    a: list[tuple[int, int]], windows: list[tuple[int, int]]
) -> None:
    array = np.array(windows, np.int64).reshape(-1, 2)
    expected = [len(as_set(a) & as_set([window])) for window in windows]
    assert covered(build(a), array).tolist() == expected
