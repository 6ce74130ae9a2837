from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from pipediag import reporters
from pipediag.errors import PipediagError
from tests import factories
from tests.reporters.tables.test_csv import NAMES

FILES = {"report.html", *NAMES}


def test_writes_every_file_and_says_which(tmp_path: Path) -> None:
    written = reporters.write_all(factories.make_session(), tmp_path / "out")

    assert {path.name for path in written} == FILES
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_one_failing_file_does_not_cost_the_others(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").mkdir()

    with pytest.raises(PipediagError, match=r"steps\.csv") as raised:
        reporters.write_all(factories.make_session(), tmp_path)

    assert str(raised.value).count("\n") == 0
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == FILES - {"steps.csv"}


def test_only_the_formats_asked_for(tmp_path: Path) -> None:
    written = reporters.write_formats(factories.make_session(), tmp_path, ["json"])

    assert written == [tmp_path / "session.json"]
    assert [path.name for path in tmp_path.iterdir()] == ["session.json"]


def _broken(*_: object) -> NoReturn:
    raise KeyError("nobody")


def _broken_rows(*_: object) -> Iterator[NoReturn]:
    yield _broken()


def test_an_error_of_ours_in_one_report_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipediag.reporters.html.page._body_context", _broken)
    monkeypatch.setattr("pipediag.reporters.tables.csv._finding_rows", _broken_rows)

    with pytest.raises(PipediagError) as raised:
        reporters.write_all(factories.make_session(), tmp_path)

    page, table = str(raised.value).splitlines()
    assert "html" in page
    assert "KeyError" in page
    assert "findings.csv" in table
    assert "please report it" in table
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"report.html", "findings.csv"}


def test_a_table_that_cannot_be_made_does_not_cost_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipediag.reporters.tables.csv._finding_rows", _broken_rows)

    with pytest.raises(PipediagError, match=r"findings\.csv"):
        reporters.write_all(factories.make_session(), tmp_path)

    assert (tmp_path / "report.html").is_file()
