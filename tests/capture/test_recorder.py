from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pipediag.capture.recorder import Recorder
from pipediag.session.reading import read_recording


def test_a_saved_recording_can_be_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    recorder.note("Something was odd.")
    recorder.save()

    read = read_recording(tmp_path / "recording.json")
    assert read == recorder.recording
    assert read.outcome == "running"


def test_a_directory_that_the_script_removed_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "reports/.capture/recording.json"
    path.parent.mkdir(parents=True)
    recorder = Recorder(path)
    recorder.save()
    shutil.rmtree(tmp_path / "reports")

    recorder.end("finished", 0, None)

    assert read_recording(path) == recorder.recording


def full(*_: object, **__: object) -> int:
    raise OSError("no space left on device")


def test_a_full_disk_leaves_the_last_recording_and_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recording.json"
    recorder = Recorder(path)
    recorder.save()
    before = path.read_text()

    monkeypatch.setattr(Path, "write_text", full)
    recorder.save()

    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
    assert "no space left on device" in recorder.recording.notes[0]


def test_a_last_recording_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(OSError, match="no space"):
        recorder.end("finished", 0, None)


def test_no_half_file_is_left_beside(tmp_path: Path) -> None:
    Recorder(tmp_path / "recording.json").save()

    assert [path.name for path in tmp_path.iterdir()] == ["recording.json"]


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    recorder = Recorder(path)

    child = os.fork()
    if child == 0:
        recorder.end("finished", 0, None)
        os._exit(0)
    os.waitpid(child, 0)

    assert not path.exists()
    assert recorder.recording.outcome == "running"


def test_a_note_is_kept_once(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    recorder.note("twice")
    recorder.note("twice")

    assert recorder.recording.notes == ["twice"]


def test_the_first_ending_counts(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    recorder.end("raised", 1, "ValueError: no")
    recorder.end("finished", 0, None)

    read = read_recording(tmp_path / "recording.json")
    assert read is not None
    assert (read.outcome, read.exit_status, read.error) == ("raised", 1, "ValueError: no")
    assert read.ended_ns is not None
    assert read.ended_ns >= read.started_ns
