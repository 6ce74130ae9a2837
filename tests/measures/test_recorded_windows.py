"""Recorded windows as arrays and rows."""

from __future__ import annotations

import pytest

from pipediag.measures.recorded_windows import (
    Building,
    gap_waits_ms,
    spans_ns,
    step_rows,
    steps_with_gaps,
)
from pipediag.session.timeline import Span, Timeline
from tests.recordings import make_block, make_recording, make_window
from tests.records import MS


def test_a_wait_is_the_step_less_its_gap() -> None:
    assert gap_waits_ms(make_block(3, 10.0, 3.0), 1).tolist() == pytest.approx([7.0] * 3)


def test_gaps_of_a_call_of_several_batches_are_summed() -> None:
    block = make_block(2, 20.0, None, gaps_us=[3000, 5000, 4000, 4000])
    assert gap_waits_ms(block, 2).tolist() == pytest.approx([6.0, 6.0])


def test_fewer_gaps_cover_the_last_steps() -> None:
    block = make_block(durations_ns=[10 * MS, 10 * MS, 30 * MS], steps=3, gaps_us=[1000])
    assert gap_waits_ms(block, 1).tolist() == pytest.approx([29.0])


def test_a_span_reaches_from_a_blocks_first_step_to_the_end_of_its_last() -> None:
    blocks = [make_block(4, 10.0, start_ms=500.0), make_block(2, 10.0, start_ms=900.0)]
    recording = make_recording(windows=[make_window("baseline", *blocks)])
    assert spans_ns(recording, recording.loops[0], "baseline") == [
        (500 * MS, 540 * MS),
        (900 * MS, 920 * MS),
    ]
    assert spans_ns(recording, recording.loops[0], "profile") == []


def test_step_rows_say_window_block_and_wait() -> None:
    recording = make_recording()
    rows = step_rows(recording, recording.loops[0])
    assert [row.index for row in rows] == list(range(70))
    assert rows[0].window == "warmup"
    assert rows[0].input_wait_ms is None
    assert (rows[10].window, rows[10].block) == ("baseline", 0)
    assert (rows[20].start_ms, rows[20].block, rows[20].input_wait_ms) == (3100.0, 1, 7.0)


def test_a_step_that_asks_for_its_batch_itself_has_its_last_gap_to_come() -> None:
    """Steps of 2, 600, 2 and 700 ms whose gaps are all of them but for 1 ms."""
    block = make_block(
        4,
        durations_ns=[2 * MS, 600 * MS, 2 * MS, 700 * MS],
        gaps_us=[5_000, 1_000, 599_000, 1_000],
        last_gap_unknown=True,
    )
    assert steps_with_gaps(block, 1) == slice(0, 3)
    assert gap_waits_ms(block, 1).tolist() == pytest.approx([1.0] * 3)
    recording = make_recording(windows=[make_window("baseline", block)])
    rows = step_rows(recording, recording.loops[0])
    assert [row.input_wait_ms for row in rows] == [1.0, 1.0, 1.0, None]


@pytest.mark.parametrize(
    ("start_ns", "step_ns", "builds"),
    [
        (90, 20, True),
        (100, 5, False),  # it ended as this one began
        (80, 20, True),
        (70, 20, False),
        (290, 20, False),  # a callback, and a call that never ended
    ],
)
def test_a_step_builds_where_a_call_that_traced_ends_in_it(
    start_ns: int, step_ns: int, builds: bool
) -> None:
    spans = [
        Span(1, "first_call", 85, 100),
        Span(2, "callback", 290, 300),
        Span(3, "first_call", 295, None),
    ]
    assert Building(Timeline(spans)).is_in(start_ns, step_ns) is builds
