from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.profiles.runs import profile_files


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two runs; the newer one is of two hosts."""
    for file in ("2026_01_01/a", "2026_01_02/a", "2026_01_02/b"):
        path = tmp_path / "plugins" / "profile" / f"{file}.xplane.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    return tmp_path


def names(files: list[Path]) -> list[str]:
    return [f"{file.parent.name}/{file.name}" for file in files]


def test_the_newest_run_of_a_log_directory(logs: Path) -> None:
    assert names(profile_files([logs], None)) == [
        "2026_01_02/a.xplane.pb",
        "2026_01_02/b.xplane.pb",
    ]


@pytest.mark.parametrize("below", ["", "plugins/profile"])
def test_the_run_that_is_named(logs: Path, below: str) -> None:
    assert names(profile_files([logs / below], "2026_01_01")) == ["2026_01_01/a.xplane.pb"]


def test_a_run_that_is_not_there_lists_those_that_are(logs: Path) -> None:
    with pytest.raises(PipediagError, match=r"no run 'x' .*: 2026_01_01, 2026_01_02\."):
        profile_files([logs], "x")


def test_a_directory_without_runs(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="no plugins/profile/ in it"):
        profile_files([tmp_path], "x")


def test_a_file_is_read_once_however_often_it_is_named(logs: Path) -> None:
    run = logs / "plugins" / "profile" / "2026_01_02"

    assert names(profile_files([run / "b.xplane.pb", logs, run / "b.xplane.pb"], None)) == [
        "2026_01_02/b.xplane.pb",
        "2026_01_02/a.xplane.pb",
    ]


def test_a_run_s_name_says_nothing_of_a_file(logs: Path) -> None:
    file = logs / "plugins" / "profile" / "2026_01_01" / "a.xplane.pb"

    assert profile_files([file], "2026_01_02") == [file]


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="There is no profile at"):
        profile_files([tmp_path / "none"], None)
