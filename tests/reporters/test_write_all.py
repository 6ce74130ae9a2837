from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from pipediag import reporters
from pipediag.errors import PipediagError
from pipediag.reporters.tables import TABLES
from pipediag.session.store import dump_session
from tests import factories

FILES = {"report.html", *(f"{name}.csv" for name in TABLES)}


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
    assert written[0].read_text() == dump_session(factories.make_session())


def _broken(*_: object) -> NoReturn:
    raise KeyError("nobody")


def test_an_error_of_ours_in_one_report_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipediag.reporters.html.page._body_context", _broken)
    monkeypatch.setitem(TABLES, "findings", _broken)

    with pytest.raises(PipediagError) as raised:
        reporters.write_all(factories.make_session(), tmp_path)

    page, table = str(raised.value).splitlines()
    assert "html" in page
    assert "KeyError" in page
    assert "findings.csv" in table
    assert "please report it" in table
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"report.html", "findings.csv"}
