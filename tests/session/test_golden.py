"""Sessions that were really written, in every version of the schema, are read and reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipediag.cli import check, report
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.store import load_session, save_session
from tests.encoding.test_malformed_sessions import shown_everywhere
from tests.session.golden.files import SUMS, session_of, sessions, sums, text_of

each_session = pytest.mark.parametrize("golden", sessions(), ids=lambda file: file.name)


def unpacked(golden: Path, folder: Path) -> Path:
    file = folder / "session.json"
    file.write_text(text_of(golden), encoding="utf-8")
    return file


def load(name: str, folder: Path) -> Session:
    return load_session(unpacked(session_of(name), folder))


def test_the_present_version_has_one() -> None:
    assert session_of().exists(), "Run `python -m tests.session.golden`."
    assert json.loads(text_of(session_of()))["schema_version"] == SCHEMA_VERSION


def test_none_has_changed() -> None:
    assert sums() == SUMS.read_text(encoding="utf-8")


@each_session
def test_it_is_read_in_the_present_form(golden: Path, tmp_path: Path) -> None:
    said: list[str] = []

    session = load_session(unpacked(golden, tmp_path), said.append)

    assert session.schema_version == SCHEMA_VERSION
    assert said == []
    assert session.verdict.bottleneck == "input"
    operation = session.operation(session.verdict.op_id)
    assert operation is not None
    assert (operation.kind, operation.line) == ("map", 20)
    again = save_session(session, tmp_path / "again.json")
    assert load_session(again) == session


@each_session
def test_it_is_shown_in_every_medium(golden: Path, tmp_path: Path) -> None:
    assert shown_everywhere(tmp_path, json.loads(text_of(golden)))


@each_session
def test_report_and_check_take_it(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = unpacked(golden, tmp_path)

    reported = CliRunner().invoke(report.command, [str(file)])
    checked = CliRunner().invoke(check.command, [str(file)])

    assert reported.exit_code == 0, reported.output
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert checked.exit_code == 1, checked.output
    assert "FAIL" in checked.stdout


def test_findings_about_results_are_told_from_their_rules(tmp_path: Path) -> None:
    subjects = {finding.rule: finding.subject for finding in load("1.0a", tmp_path).findings}

    assert subjects["trace-only-python"] == "correctness"
    assert subjects["small-shuffle"] == "quality"
    assert subjects["gpu-unused"] == "precondition"
    assert subjects["missing-cache"] == "speed"


def test_a_trial_of_the_pipeline_alone_is_an_estimate(tmp_path: Path) -> None:
    session = load("1.0d", tmp_path)

    tried = [finding.trial for finding in session.findings if finding.trial.speedup is not None]
    assert [(trial.consumer, trial.basis) for trial in tried] == [("pipeline alone", "pipeline")]
    assert session.combined is not None
    assert session.combined.basis == "pipeline"


def test_a_loop_time_has_the_mean_step_that_it_was_made_of(tmp_path: Path) -> None:
    session = load("1.0e", tmp_path)

    loop = session.diagnosed_loop()
    assert loop is not None
    assert loop.time is not None
    assert session.steps is not None
    assert loop.time.step_ms == session.steps.mean_ms
