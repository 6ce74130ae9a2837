"""What is said of each idle gap of a device, side by side."""

from __future__ import annotations

import numpy as np
import pytest

from pipediag.measures import devices as gaps_module
from pipediag.measures.devices import GapColumns, all_gaps, gap_columns
from pipediag.trace.device.gap_details import GapDetails
from pipediag.trace.device.gap_histogram import gap_histogram
from pipediag.trace.device.traces import DeviceGaps, DeviceTrace
from pipediag.trace.pipeline.records import IteratorKey
from pipediag.trace.summary import TraceSummary
from pipediag.vocabulary import GAP_CAUSES, GapCause
from tests.measures.traces import make_split, make_trace

MS = 1_000_000
MAP: IteratorKey = ("Root::Map", ("m",))
PREFETCH: IteratorKey = ("Root::Prefetch", ("p",))


def device(*gaps: tuple[int, int, dict[GapCause, int]], **details: object) -> DeviceTrace:
    """Gaps as start, end and causes, all in milliseconds."""
    count = len(gaps)
    split = np.array([[causes.get(cause, 0) for cause in GAP_CAUSES] for _, _, causes in gaps]) * MS
    spans = np.array([(start, end) for start, end, _ in gaps]) * MS
    values = {
        "iterator_ids": np.full(count, -1),
        "iterators": (MAP, PREFETCH),
        "buffered_elements": np.full(count, np.nan),
        "doing_ids": np.full(count, -1, np.int32),
        "doing_names": ("$train_step", "save$"),
        "launch_ids": np.full(count, -1),
    }
    return DeviceTrace(
        name="GPU:0",
        kind="gpu",
        window=(0, 100 * MS),
        busy_ns=0,
        idle_ns=100 * MS,
        longest_gap_ns=0,
        noise_ns=0,
        gap_floor_ns=0,
        gap_histogram=gap_histogram(spans[:, 1] - spans[:, 0], 0),
        gaps=DeviceGaps(spans, split, GapDetails(**{**values, **details})),  # type: ignore[arg-type]
    )


def columns(traced: DeviceTrace, trace: TraceSummary | None = None) -> GapColumns:
    return gap_columns(traced, trace or make_trace(), np.arange(len(traced.gaps)))


def test_times_count_from_the_windows_start() -> None:
    traced = device((7, 16, {"python": 9}), (20, 24, {"python": 4}))
    found = columns(traced, make_trace(window_ns=(5 * MS, 105 * MS)))
    assert found.start_ms == [2.0, 15.0]
    assert found.duration_ms == [9.0, 4.0]


def test_the_cause_is_that_of_the_largest_part() -> None:
    (found,) = columns(device((0, 10, {"input": 3, "launch": 5, "unknown": 2}))).causes_ms
    assert dict(zip(GAP_CAUSES, found, strict=True)) == {
        **dict.fromkeys(GAP_CAUSES, 0.0),
        "input": 3.0,
        "launch": 5.0,
        "unknown": 2.0,
    }
    assert columns(device((0, 10, {"input": 3, "launch": 5, "unknown": 2}))).cause == ["launch"]


def test_only_input_has_an_iterator_and_a_buffer() -> None:
    traced = device(
        (0, 10, {"input": 6, "sync": 4}),
        (20, 30, {"input": 4, "sync": 6}),
        (40, 50, {"input": 10}),
        iterator_ids=np.array([1, 0, -1]),
        buffered_elements=np.array([0.0, 2.0, np.nan]),
    )
    found = columns(traced)
    assert found.iterator == [PREFETCH, None, None]
    # An empty buffer is known to be empty.
    assert found.buffered_elements == [0.0, None, None]


def test_what_the_host_was_doing_has_the_name_of_its_function() -> None:
    traced = device(*[(0, 1, {"python": 1})] * 3, doing_ids=np.array([1, 0, -1], np.int32))  # type: ignore[list-item]
    assert columns(traced).doing == ["save$", "train_step", None]


def test_the_step_is_that_in_which_the_gap_begins() -> None:
    # Steps of 10 ms from 0 to 30.
    trace = make_trace(steps=make_split(3, python=10.0))
    traced = device(*[(start, start + 5, {"python": 5}) for start in (0, 9, 10, 29, 30)])  # type: ignore[list-item]
    assert columns(traced, trace).step == [0, 0, 1, 2, None]
    assert columns(traced, make_trace(steps=None)).step == [None] * 5


def test_chosen_gaps_come_in_the_order_they_were_chosen_in() -> None:
    traced = device(*[(start, start + 1, {"python": 1}) for start in range(5)])  # type: ignore[list-item]
    assert gap_columns(traced, make_trace(), np.array([3, 1])).start_ms == [3.0, 1.0]


@pytest.mark.parametrize("count", [1, 4, 5])
def test_all_gaps_come_once_each_a_few_at_a_time(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps_module, "_AT_ONCE", 2)
    traced = device(*[(start, start + 1, {"python": 1}) for start in range(count)])  # type: ignore[list-item]
    parts = list(all_gaps(traced, make_trace()))
    assert max(len(places) for places, _ in parts) <= 2
    assert [place for places, _ in parts for place in places.tolist()] == list(range(count))
    assert [ms for _, part in parts for ms in part.start_ms] == [float(n) for n in range(count)]
