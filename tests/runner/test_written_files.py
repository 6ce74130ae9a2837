from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipediag.runner import written_files
from pipediag.runner.written_files import sentence, written_since


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("old.txt", "new.txt", "backup/latest.h5", "report/session.json", ".git/index",
                 "__pycache__/main.pyc"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_new_is_found_but_for_reports_caches_and_hidden_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = (folder / "new.txt").stat().st_ctime - 1000
    assert written_since(began, [folder, folder], [folder / "report"]) == [
        "backup/latest.h5",
        "new.txt",
        "old.txt",
    ]
    later = (folder / "new.txt").stat().st_ctime + 1000
    assert written_since(later, [folder], []) == []
    os.utime(folder / "new.txt", (later + 1, later + 1))
    assert written_since(later, [folder], []) == ["new.txt"]


def test_files_elsewhere_have_their_whole_path(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert str(folder / "new.txt") in written_since(0.0, [folder], [])


def test_what_our_own_output_goes_to_is_none_of_the_scripts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "report.txt").open("w") as out:
        real = os.fstat
        monkeypatch.setattr(
            written_files.os, "fstat", lambda number: real(out.fileno() if number == 1 else number)
        )
        assert "report.txt" not in written_since(0.0, [folder], [])


def test_the_search_is_short(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "MOST_ENTRIES", 1)
    assert len(written_since(0.0, [folder], [])) == 1
    ticks = iter(range(0, 1000, 10))
    assert written_since(0.0, [folder], [], clock=lambda: next(ticks)) == []


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert written_since(0.0, [tmp_path / "gone"], []) == []


def test_the_sentence_names_the_first_few() -> None:
    assert sentence(["a"]) == (
        "The script was stopped. While it ran, a was made or changed: "
        "its next run may find and use it."
    )
    assert (
        "a, b, c and 2 more were made or changed: its next run may find and use them."
        in sentence(list("abcde"))
    )
