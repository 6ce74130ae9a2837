from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.history import command
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.store import load_session, save_session
from tests.comparison.sides import run_of


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def history(*arguments: Any) -> Result:
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(folder: Path, day: int, step_ms: float) -> Path:
    folder.mkdir(parents=True)
    session = run_of(step_ms, created_at=f"2026-01-{day:02}T00:00:00+00:00")
    save_session(session, folder)
    return folder


def test_sessions_are_added_and_the_commit_that_moved_something_is_named(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 21):
        monkeypatch.setenv("GITHUB_SHA", f"{day:02}badc0de")
        folder = write(here / f"{day}", day, 10.0 + day / 100 if day <= 10 else 13.0 + day / 100)
        assert history("add", folder).exit_code == 0
    shown = history("show")

    assert shown.exit_code == 0
    assert "From 10.1 to 13.2 ms since 11badc0de (2026-01-11)." in shown.stdout


def test_a_directory_of_runs_and_what_is_there_already(here: Path) -> None:
    for at in (1, 2):
        write(here / "runs" / f"run-{at}", at, 10.0 + at)
    assert "2 of 2 sessions added" in history("add", "runs", "--commit", "abc").stderr
    again = history("add", "runs", "--file", "pipediag-history.sqlite")
    assert "0 of 2 sessions added to pipediag-history.sqlite; 2 were in it already" in again.stderr


def test_what_is_before_a_session_that_cannot_be_read_is_kept_and_said(here: Path) -> None:
    write(here / "runs" / "run-1", 1, 10.0)
    broken = here / "runs" / "run-2"
    broken.mkdir()
    (broken / "session.json").write_text("{")
    with pytest.raises(PipediagError, match=r"run-2.* Of 2 sessions, 1 were added to"):
        history("add", "runs")
    assert "Step" in history("show").stdout


def test_sessions_are_held_one_at_a_time(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for at in range(1, 8):
        write(here / "runs" / f"run-{at}", at, 10.0)
    held: list[int] = []

    def load(path: Path, tell: object = None) -> Session:
        gc.collect()
        held.append(sum(isinstance(one, Session) for one in gc.get_objects()))
        return load_session(path)

    monkeypatch.setattr("pipediag.session.store.load_session", load)
    history("add", "runs")
    assert len(held) == 7
    assert max(held) - held[0] <= 1


def test_without_a_history_there_is_nothing_to_show(here: Path) -> None:
    with pytest.raises(PipediagError, match="There is no history"):
        history("show")


def test_a_session_that_cannot_be_read_makes_no_history(here: Path) -> None:
    with pytest.raises(PipediagError):
        history("add", "absent")
    assert not list(here.iterdir())
