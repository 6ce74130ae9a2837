"""The file of the timeline: full, deleted, out of reach."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture import timeline as module
from pipediag.capture.timeline import DELETED, FULL, TimelineFile
from pipediag.session.reading import read_timeline
from tests.capture.timeline.stage import TimelineStage


def test_a_full_file_says_until_when_all_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_LINES", 3)
    stage = TimelineStage(tmp_path, monkeypatch)
    stage.at(10).begins("script")
    stage.at(20).passed("aside", 10, 20)
    assert stage.notes == []
    callback = stage.at(30).begins("callback", "Costly")
    assert stage.notes == [FULL]
    stage.at(40).ended(callback)
    assert not stage.looks
    assert stage.at(50).begins("fit") is None
    stage.at(60).steps_begin("loop1", 60, 5)
    stage.at(70).steps_ended(70)
    stage.at(80).closed()

    assert stage.written == [
        ("script", "", 10, None),
        ("aside", "", 10, 20),
        ("callback", "Costly", 30, None),
    ]
    assert read_timeline(stage.path).until_ns == 30
    assert len(stage.path.read_bytes().splitlines()) == 4
    assert stage.notes == [FULL]


def test_what_lasts_is_written_again_where_the_script_has_deleted_the_directory(
    stage: TimelineStage,
) -> None:
    stage.at(10).begins("script")
    stage.at(15).passed("aside", 10, 15)
    fit = stage.at(20).begins("fit", "fit")
    shutil.rmtree(stage.path.parent)
    stage.at(30).steps_begin("loop1", 30, None)
    stage.at(40).ended(fit)

    assert stage.written == [
        ("script", "", 10, None),
        ("fit", "fit", 20, 40),
        ("steps", "loop1", 30, 40),
    ]
    assert stage.notes == [DELETED]


def test_a_directory_that_is_not_there_yet_is_made(tmp_path: Path) -> None:
    notes: list[str] = []
    file = TimelineFile(tmp_path / "not" / "yet" / "timeline.jsonl", notes.append)
    file.append(b"[]\n", ())

    assert (tmp_path / "not" / "yet" / "timeline.jsonl").read_bytes() == b"[]\n"
    assert notes == []


def test_a_moment_without_descriptors_costs_its_line_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    file = TimelineFile(tmp_path / "timeline.jsonl", notes.append)
    file.append(b"1\n", ())
    opened = Path.open

    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "open", fails)
    file.append(b"2\n", ())
    monkeypatch.setattr(Path, "open", opened)
    file.append(b"3\n", ())

    assert (tmp_path / "timeline.jsonl").read_bytes() == b"1\n3\n"
    (note,) = notes
    assert note.endswith("without it: Too many open files.")


def test_a_path_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    notes: list[str] = []
    file = TimelineFile(tmp_path / "file" / "timeline.jsonl", notes.append)
    file.append(b"1\n", ())
    file.end_here()

    assert set(notes) == {
        "What the script did could not be written down at some moments, so the ledger of the run "
        "may be without it: Not a directory."
    }


def test_the_end_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: 5)
    file = TimelineFile(tmp_path / "timeline.jsonl", lambda _: None)
    file.end_here()
    file.end_here()
    file.append(b"1\n", ())

    assert (tmp_path / "timeline.jsonl").read_bytes() == b'["until",5]\n'
