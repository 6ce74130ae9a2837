from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipediag.cli.show import command
from pipediag.errors import PipediagError
from pipediag.session.store import save_session
from tests import factories


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


def test_a_missing_session_is_a_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "none")])

    assert isinstance(result.exception, PipediagError)


def rewritten(directory: Path, **changes: Any) -> None:
    file = directory / "session.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def test_a_newer_major_version_is_refused_in_a_sentence(session_directory: Path) -> None:
    rewritten(session_directory, schema_version="2.0")

    result = CliRunner().invoke(command, [str(session_directory), "--format", "html"])

    assert isinstance(result.exception, PipediagError)
    assert "schema version" in str(result.exception)
    assert not (session_directory / "report.html").exists()
