from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.history import store
from pipediag.history.metrics import METRICS
from pipediag.history.store import VERSION, History, Series, opened
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


def rows_of(path: Path, scripts: int, of_each: int) -> None:
    """A file as `add` makes it, without the sessions themselves."""
    kept(path, dated(1))
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("delete from metrics")
        connection.execute("delete from sessions")
        for at in range(scripts * of_each):
            row = (at, f"digest-{at}", f"{at:06}", f"{at % scripts}.py", "[]", "fedc", None, b"")
            connection.execute("insert into sessions values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            for metric in METRICS:
                connection.execute("insert into metrics values (?, ?, ?)", (at, metric.name, 1.5))
    connection.close()


def work(path: Path) -> tuple[int, int]:
    """Thousands of instructions that SQLite takes to read all of it, and measurements read."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    connection = sqlite3.connect(path)
    connection.set_progress_handler(count, 1_000)
    found = History(connection).series()
    connection.close()
    return counted, sum(len(series.points) for series in found)


@pytest.mark.parametrize("shape", [(1, 5_000), (5_000, 1), (70, 70)])
def test_five_thousand_rows_are_read_in_one_go(tmp_path: Path, shape: tuple[int, int]) -> None:
    """However many scripts they are of: a look at all rows for each would be millions."""
    rows_of(tmp_path / "h.sqlite", *shape)
    counted, measurements = work(tmp_path / "h.sqlite")
    assert measurements == 4 * shape[0] * shape[1]
    # A row of a metric takes some tens, and ten more to be put in its place.
    assert counted * 1_000 < 200 * measurements


def test_of_an_endless_series_the_newest_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MOST_ROWS", 5)
    rows_of(tmp_path / "h.sqlite", 2, 20)
    with opened(tmp_path / "h.sqlite", create=False) as history:
        found = history.series()
    assert [point.created_at for point in found[0].points] == [
        f"{at:06}" for at in range(30, 40, 2)
    ]
    assert len(found) == 8
