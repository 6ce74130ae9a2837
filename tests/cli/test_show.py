"""What `analyze` printed can be read again, from the session alone."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from pipediag.cli.show import command
from pipediag.errors import PipediagError
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


def test_takes_the_file_too_and_names_no_page_that_is_not_there(directory: Path) -> None:
    result = CliRunner().invoke(command, [str(directory / "session.json")])

    assert result.exit_code == 0
    assert "Measured: 3.10x" in result.stdout
    assert "report.html" not in result.stdout


def test_the_next_command_speaks_of_this_session(directory: Path) -> None:
    passing = factories.make_finding(status="pass")
    save_session(factories.make_session(findings=[passing]), directory)

    result = CliRunner().invoke(command, ["out"])

    assert "pipediag check out\n" in result.stdout


def test_a_missing_session_is_a_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "none")])

    assert isinstance(result.exception, PipediagError)
