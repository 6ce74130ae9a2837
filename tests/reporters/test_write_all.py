from __future__ import annotations

from pathlib import Path

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
