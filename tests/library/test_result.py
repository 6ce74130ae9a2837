"""The names that `import pipediag` gives, and a result."""

from __future__ import annotations

from pathlib import Path

import pytest

import pipediag
from pipediag.library.result import Result
from pipediag.reporters import tables
from pipediag.session.model import Session
from pipediag.session.store import load_session, save_session
from tests import factories


@pytest.fixture
def session() -> Session:
    return factories.make_session()


@pytest.fixture
def stored(session: Session, tmp_path: Path) -> Path:
    directory = tmp_path / "report"
    directory.mkdir()
    save_session(session, directory)
    return directory


@pytest.mark.parametrize("file", ["", "session.json"])
def test_a_file_or_its_directory_is_loaded(stored: Path, session: Session, file: str) -> None:
    result = pipediag.load(str(stored / file))
    assert result.session == session
    assert result.directory == stored
    assert result.verdict == session.verdict.summary


def test_it_prints_as_the_summary_without_colours_in_a_notebook_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = repr(Result(session, None))
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(Result(session, None)) == repr(Result(session, None)) == text
    assert session.verdict.summary.split()[0] in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_saving_writes_what_the_command_writes(stored: Path, tmp_path: Path) -> None:
    result = pipediag.load(stored)
    target = result.save(tmp_path / "other" / "place")
    expected = {"session.json", "report.html", *(f"{name}.csv" for name in tables.TABLES)}
    assert {path.name for path in target.iterdir()} == expected
    assert load_session(target) == result.session
