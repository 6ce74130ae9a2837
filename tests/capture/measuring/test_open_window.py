from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.capture.journal import open_journal
from pipediag.capture.measuring.open_window import OpenWindow
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import IteratorModel
from pipediag.session.reading import read_journal


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "recording.json")


@pytest.fixture
def window(tmp_path: Path, recorder: Recorder) -> OpenWindow:
    journal = open_journal(tmp_path / "steps.journal")
    return OpenWindow.begin("baseline", "loop1", 0, recorder.recording, journal)


def gaps(*times: int) -> IteratorModel:
    return IteratorModel(gaps_us=list(times), nodes=[], output_id=0)


def steps(window: OpenWindow, count: int) -> None:
    for step in range(count):
        window.add(100 + 10 * step, 10, 4, 1)


def test_an_open_window_is_in_the_recording_as_incomplete(
    window: OpenWindow, recorder: Recorder
) -> None:
    steps(window, 2)

    (record,) = recorder.recording.windows
    assert (record.kind, record.loop_id, record.complete) == ("baseline", "loop1", False)
    assert record.end_ns == 120
    assert window.count == 2


def test_each_step_goes_to_the_journal_at_once(window: OpenWindow, tmp_path: Path) -> None:
    steps(window, 2)

    journal = read_journal(tmp_path / "steps.journal")
    assert journal.tolist() == [[0, 0, 100, 10, 4, 1], [0, 0, 110, 10, 4, 1]]


def test_a_block_takes_the_latest_gap_of_each_step(window: OpenWindow) -> None:
    steps(window, 3)
    window.close_block(gaps(9, 9, 1, 2, 3), unfinished=0, batches_per_call=1)

    (block,) = window.record.blocks
    assert block.gaps_us == [1, 2, 3]
    assert block.starts_ns == [100, 110, 120]
    assert block.waits_ns == [4, 4, 4]


def test_gaps_of_unfinished_steps_are_left_out(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(gaps(9, 1, 2, 99), unfinished=1, batches_per_call=1)

    assert window.record.blocks[0].gaps_us == [1, 2]


def test_a_call_of_several_batches_has_several_gaps(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(gaps(9, 1, 2, 3, 4), unfinished=0, batches_per_call=2)

    assert window.record.blocks[0].gaps_us == [1, 2, 3, 4]


def test_an_empty_block_is_not_kept(window: OpenWindow) -> None:
    window.close_block(gaps(1), unfinished=0, batches_per_call=1)
    window.close(complete=True)

    assert window.record.blocks == []
    assert window.record.complete


def test_closing_keeps_the_open_block_without_gaps(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(gaps(1, 2), unfinished=0, batches_per_call=1)
    steps(window, 1)
    window.close(complete=False, reason="the script raised")

    assert [block.gaps_us for block in window.record.blocks] == [[1, 2], []]
    assert window.record.reason == "the script raised"
    assert window.durations() == [10, 10, 10]


def test_wait_is_absent_where_python_does_not_call_next(window: OpenWindow) -> None:
    window.add(100, 10, None, 1)
    window.close(complete=True)

    assert window.record.blocks[0].waits_ns == []


def test_a_block_says_that_its_last_gap_is_to_come(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(gaps(9, 1, 2), unfinished=0, batches_per_call=1, last_gap_unknown=True)
    steps(window, 1)
    window.close(complete=True)

    assert [block.last_gap_unknown for block in window.record.blocks] == [True, False]


def test_what_lies_between_two_blocks_is_no_part_of_its_spans(window: OpenWindow) -> None:
    steps(window, 2)
    window.close_block(None, 0, 1)
    window.add(900, 10, 4, 1)

    assert window.spans_ns() == [(100, 120), (900, 910)]
