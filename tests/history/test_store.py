from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.history.store import VERSION, Series, opened
from pipediag.session.model import Session
from pipediag.session.run import Script
from tests.comparison.sides import run_of
from tests.records import make_environment


def dated(day: int, step_ms: float = 10.0, **overrides: object) -> Session:
    return run_of(step_ms, created_at=f"2026-01-{day:02}T03:04:05+00:00", **overrides)


def kept(path: Path, *sessions: Session) -> list[Series]:
    with opened(path, create=True) as history:
        for session in sessions:
            history.add(session, f"commit-{session.created_at[8:10]}")
    with opened(path, create=False) as history:
        return history.series()


def test_each_metric_is_a_series_in_the_order_of_time(tmp_path: Path) -> None:
    found = kept(tmp_path / "h.sqlite", dated(2, 12.0), dated(1, 10.0), dated(3, 11.0))
    by_name = {series.metric.name: series for series in found}

    assert set(by_name) == {"step-ms", "input-wait-percent", "overhead-percent", "run-s"}
    step = by_name["step-ms"]
    assert [point.value for point in step.points] == [10.0, 12.0, 11.0]
    assert [point.commit for point in step.points] == ["commit-01", "commit-02", "commit-03"]


def test_a_session_is_kept_once(tmp_path: Path) -> None:
    with opened(tmp_path / "h.sqlite", create=True) as history:
        assert history.add(dated(1), None)
        assert not history.add(dated(1), None)


def test_scripts_arguments_and_machines_are_kept_apart(tmp_path: Path) -> None:
    found = kept(
        tmp_path / "h.sqlite",
        dated(1),
        dated(2, script=Script(path="other.py", args=[], outcome="stopped")),
        dated(3, script=Script(path="train.py", args=["--big"], outcome="stopped")),
        dated(4, environment=make_environment(fingerprint="fedc")),
    )
    apart = {(series.script, series.args, series.fingerprint) for series in found}
    assert len(apart) == 4
    assert all(len(series.points) == 1 for series in found)


def test_what_a_session_does_not_have_is_no_point(tmp_path: Path) -> None:
    found = kept(tmp_path / "h.sqlite", dated(1, steps=None, breakdown=None))
    assert [series.metric.name for series in found] == ["run-s"]


def test_the_whole_session_is_in_it(tmp_path: Path) -> None:
    kept(tmp_path / "h.sqlite", dated(1))
    [(size,)] = sqlite3.connect(tmp_path / "h.sqlite").execute(
        "select length(session) from sessions"
    )
    assert size > 500


def test_a_history_that_is_missing_is_only_made_by_add(tmp_path: Path) -> None:
    with (
        pytest.raises(PipediagError, match="There is no history"),
        opened(tmp_path / "h.sqlite", create=False),
    ):
        pass
    assert not (tmp_path / "h.sqlite").exists()


def test_a_file_that_is_none_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    path.write_text("no data base, and long enough to be taken for one " * 10)
    before = path.read_text()
    with (
        pytest.raises(PipediagError, match="cannot be used as a history"),
        opened(path, create=True),
    ):
        pass
    assert path.read_text() == before


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    kept(path, dated(1))
    connection = sqlite3.connect(path)
    connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(PipediagError, match="newer pipediag"), opened(path, create=True):
        pass
