"""Files of all formats, and the report as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from markdown_it import MarkdownIt

from pipediag import reporters
from pipediag.errors import PipediagError
from pipediag.reporters import markdown
from pipediag.reporters.tables import TABLES
from pipediag.session.model import Session
from pipediag.session.store import dump_session
from tests import factories
from tests.reporters import sessions, trial_sessions

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
    monkeypatch.setattr("pipediag.reporters.html._context", _broken)
    monkeypatch.setitem(TABLES, "findings", _broken)
    with pytest.raises(PipediagError) as raised:
        reporters.write_all(factories.make_session(), tmp_path)
    page, table = str(raised.value).splitlines()
    assert "html" in page
    assert "KeyError" in page
    assert "findings.csv" in table
    assert "please report it" in table
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"report.html", "findings.csv"}


PARSER = MarkdownIt("commonmark").enable("table")


def written(session: Session) -> str:
    [(name, text)] = markdown.files(session)
    assert name == "report.md"
    return text


def headings(text: str) -> list[str]:
    tokens = PARSER.parse(text)
    return [tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open"]


def test_it_says_what_an_issue_would_be_asked_for() -> None:
    session = trial_sessions.everything_tried()
    text = written(session.model_copy(update={"run": factories.make_run()}))
    assert headings(text)[0].startswith("pipediag: Input-bound")
    assert headings(text)[1:] == [
        "What to change first",
        "Where the run's time goes",
        "Where a step's time goes",
        "Findings",
        "Where it ran",
    ]
    assert "3.1x" in text
    assert "pairs of blocks" in text
    assert "| Waiting for input |" in text
    assert session.pipediag_version in text


@pytest.mark.parametrize(
    "make", [factories.make_session, sessions.hostile, sessions.enormous, sessions.nothing_measured]
)
def test_its_tables_are_tables(make: Any) -> None:
    session = make()
    tokens = PARSER.parse(written(session))
    tables = sum(token.type == "table_open" for token in tokens)
    expected = sum((session.run is not None, session.breakdown is not None, bool(session.findings)))
    assert tables == expected
    assert not any(token.type == "html_block" for token in tokens)


def test_what_was_not_measured_is_left_out_and_not_made_up() -> None:
    text = written(sessions.nothing_measured())
    assert headings(text)[0].startswith("pipediag: ")
    assert "killed before a step was seen" in text
    assert "Where a step's time goes" not in text
    assert len(written(sessions.enormous())) < 60_000
