from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.library.intervals.directories import INDEX_FILE, Directories
from pipediag.session.files import SESSION_FILE
from pipediag.session.repeats import session_paths
from tests.factories import make_session


def listed(root: Path) -> list[dict[str, str]]:
    with (root / INDEX_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_each_measurement_has_a_directory_and_a_row(tmp_path: Path) -> None:
    directories = Directories(tmp_path)
    session = make_session()
    for number in (1, 2):
        assert directories.next() == (number, tmp_path / f"interval-{number}")
        directories.add(session, number)
    first, second = listed(tmp_path)
    assert (first["interval"], first["directory"]) == ("1", "interval-1")
    assert second["bottleneck"] == session.verdict.bottleneck
    assert session.steps is not None
    assert float(second["steps.median_ms"]) == session.steps.median_ms


def test_a_job_that_is_begun_again_goes_on_counting(tmp_path: Path) -> None:
    before = Directories(tmp_path)
    for name in ("interval-2", "interval-10", "interval-x", "interval-03"):
        (tmp_path / name).mkdir()
    before.add(make_session(), 10)
    again = Directories(tmp_path)
    number, _ = again.next()
    again.add(make_session(), number)
    assert [row["interval"] for row in listed(tmp_path)] == ["10", "11"]


def test_one_that_came_to_nothing_leaves_no_gap(tmp_path: Path) -> None:
    directories = Directories(tmp_path)
    number, _ = directories.next()
    directories.given_up(number)
    assert directories.next()[0] == number


def test_the_raw_profile_of_the_last_one_is_kept(tmp_path: Path) -> None:
    directories = Directories(tmp_path)
    for number in (1, 2):
        _, directory = directories.next()
        assert directory is not None
        (directory / "trace").mkdir(parents=True)
        directories.add(make_session(), number)
    assert not (tmp_path / "interval-1" / "trace").exists()
    assert (tmp_path / "interval-2" / "trace").exists()


def test_the_gate_takes_them_for_runs_of_one_script(tmp_path: Path) -> None:
    directories = Directories(tmp_path)
    for _ in range(2):
        _, directory = directories.next()
        assert directory is not None
        directory.mkdir()
        (directory / SESSION_FILE).touch()
    directories.add(make_session(), 2)
    assert session_paths(tmp_path) == [tmp_path / "interval-1", tmp_path / "interval-2"]


def test_without_a_directory_they_are_only_counted() -> None:
    directories = Directories(None)
    assert directories.next() == (1, None)
    directories.add(make_session(), 1)


def test_a_report_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / SESSION_FILE).touch()
    with pytest.raises(PipediagError, match="holds the report of a single measurement"):
        Directories(tmp_path)
