from __future__ import annotations

import json
import struct
from dataclasses import asdict
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.session.reading import read_journal, read_recording, recover
from pipediag.session.recording import Recording
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS

Step = tuple[int, int, int, int, int, int]


def write_journal(path: Path, *steps: Step, room: int = 4) -> Path:
    raw = b"".join(struct.pack("<6q", *step) for step in steps)
    path.write_bytes(raw + bytes(48 * room))
    return path


def steps_of(window: int, count: int, start_ms: float = 4000.0, loop: int = 0) -> list[Step]:
    starts = [round((start_ms + 10 * index) * MS) for index in range(count)]
    return [(loop, window, start, 10 * MS, 4 * MS, 1) for start in starts]


def recovered(tmp_path: Path, recording: Recording, steps: list[Step]) -> int:
    return recover(recording, read_journal(write_journal(tmp_path / "steps.journal", *steps)))


def test_a_recording_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text(json.dumps(asdict(make_recording())), encoding="utf-8")
    assert read_recording(path) == make_recording()


def test_no_file_no_recording(tmp_path: Path) -> None:
    assert read_recording(tmp_path / "recording.json") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": 1, "pid"', "not complete JSON"),
        ('{"format": 99}', "format 99"),
        ("[]", "format None"),
        ('{"format": 1, "pid": "many"}', "is not a recording"),
    ],
)
def test_a_damaged_recording_is_an_error_that_says_what(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "recording.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PipediagError, match=message):
        read_recording(path)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="cannot read"):
        read_recording(tmp_path)
    with pytest.raises(PipediagError, match="cannot read"):
        read_journal(tmp_path)


def test_empty_records_of_the_journal_are_no_steps(tmp_path: Path) -> None:
    journal = read_journal(write_journal(tmp_path / "j", *steps_of(0, 3), room=100))
    assert journal.shape == (3, 6)
    assert read_journal(tmp_path / "none").shape == (0, 6)


def test_the_baseline_of_a_killed_child_is_recovered(tmp_path: Path) -> None:
    recording = make_recording(windows=[make_window("warmup")])
    assert recovered(tmp_path, recording, steps_of(1, 7)) == 7
    window = recording.windows[1]
    assert (window.kind, window.complete, window.loop_id) == ("baseline", False, "loop1")
    assert window.blocks[0].durations_ns == [10 * MS] * 7
    assert window.blocks[0].waits_ns == [4 * MS] * 7
    assert window.end_ns == 4070 * MS
    assert "journal" in (window.reason or "")


def test_a_baseline_that_drained_a_buffer_before_was_warm_up(tmp_path: Path) -> None:
    recording = make_recording(windows=[make_window("warmup")])
    steps = [*steps_of(1, 5, 4000.0), *steps_of(2, 6, 4100.0)]
    assert recovered(tmp_path, recording, steps) == 11
    assert [window.kind for window in recording.windows] == ["warmup", "warmup", "baseline"]


def test_windows_after_a_saved_baseline_follow_in_their_order(tmp_path: Path) -> None:
    recording = make_recording(windows=[make_window("warmup"), make_window("baseline")])
    recovered(tmp_path, recording, [*steps_of(2, 5), *steps_of(3, 5, 4200.0)])
    assert [window.kind for window in recording.windows[2:]] == ["stacks", "profile"]


def test_complete_windows_are_left_alone(tmp_path: Path) -> None:
    recording = make_recording(windows=[make_window("warmup")])
    assert recovered(tmp_path, recording, steps_of(0, 99)) == 0
    assert len(recording.windows[0].blocks) == 1


def test_an_open_window_gets_the_steps_after_its_last(tmp_path: Path) -> None:
    open_window = make_window("baseline", make_block(3), complete=False)
    recording = make_recording(windows=[open_window])
    assert recovered(tmp_path, recording, steps_of(0, 5)) == 2
    assert [len(block.durations_ns) for block in open_window.blocks] == [3, 2]


def test_steps_of_a_loop_that_was_never_saved_are_left_out(tmp_path: Path) -> None:
    recording = make_recording(windows=[], loops=[make_recorded_loop()])
    assert recovered(tmp_path, recording, steps_of(0, 5, loop=3)) == 0
    assert recording.windows == []
