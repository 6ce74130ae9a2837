from __future__ import annotations

from pathlib import Path

from pipediag.session.repeats import MOST, session_paths


def with_session(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "session.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_file_and_a_directory_with_a_session_stand_for_themselves(tmp_path: Path) -> None:
    folder = with_session(tmp_path / "run")
    with_session(folder / "inner")
    assert session_paths(folder) == [folder]
    assert session_paths(folder / "session.json") == [folder / "session.json"]


def test_a_directory_of_runs_stands_for_each_in_their_order(tmp_path: Path) -> None:
    for name in ("run-10", "run-2", "run-1"):
        with_session(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in session_paths(tmp_path)] == ["run-1", "run-2", "run-10"]


def test_a_directory_without_any_is_told_by_whoever_reads_it(tmp_path: Path) -> None:
    assert session_paths(tmp_path) == [tmp_path]
    assert session_paths(tmp_path / "absent") == [tmp_path / "absent"]


def test_there_is_an_end_to_them(tmp_path: Path) -> None:
    for at in range(MOST + 5):
        with_session(tmp_path / f"run-{at}")
    assert len(session_paths(tmp_path)) == MOST
