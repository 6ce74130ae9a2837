"""`pipediag show`: the summary and the reports again, from the session alone."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pipediag.cli.show import command
from pipediag.reporters import write_all
from pipediag.reporters.terminal.summary import render
from pipediag.session.store import save_session
from tests import factories
from tests.reporters import trial_sessions


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    here = Path("out")
    here.mkdir()
    save_session(trial_sessions.everything_tried(), here)
    return here


@pytest.mark.parametrize("verbose", [False, True])
def test_prints_what_analyze_prints(directory: Path, verbose: bool) -> None:
    write_all(trial_sessions.everything_tried(), directory)
    printed = StringIO()
    render(
        trial_sessions.everything_tried(),
        Console(file=printed, width=80),
        output_directory=directory,
        verbose=verbose,
    )

    result = CliRunner().invoke(command, [str(directory), *(["-v"] if verbose else [])])

    assert result.exit_code == 0
    assert result.stdout == printed.getvalue()
    assert "out/report.html" in result.stdout


@pytest.fixture
def session_directory(tmp_path: Path) -> Path:
    save_session(factories.make_session(), tmp_path)
    return tmp_path


def test_writes_beside_the_session(session_directory: Path) -> None:
    result = CliRunner().invoke(command, [str(session_directory), "--format", "html,csv"])

    assert result.exit_code == 0
    assert (session_directory / "report.html").exists()
    assert (session_directory / "steps.csv").exists()
    assert result.stdout == ""
    assert "report.html" in result.stderr


def test_writes_only_the_formats_asked_for_where_asked(session_directory: Path) -> None:
    output = session_directory / "again"
    arguments = [str(session_directory / "session.json"), "--format", "JSON, html,json"]

    result = CliRunner().invoke(command, [*arguments, "-o", str(output)])

    assert result.exit_code == 0
    assert {path.name for path in output.iterdir()} == {"session.json", "report.html"}
    original = session_directory / "session.json"
    assert (output / "session.json").read_text() == original.read_text()


def test_an_unknown_format_lists_the_known_ones(session_directory: Path) -> None:
    result = CliRunner().invoke(command, [str(session_directory), "--format", "html,pdf"])

    assert result.exit_code == 2
    assert "no format 'pdf'; the formats are html, csv, json, markdown" in result.stderr
