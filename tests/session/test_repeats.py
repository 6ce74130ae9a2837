from __future__ import annotations

import gc
from pathlib import Path

import pytest

from pipediag.session import repeats
from pipediag.session.host import HostSample
from pipediag.session.model import Session
from pipediag.session.repeats import MOST, load_runs, session_paths, without_rows
from pipediag.session.steps import StepRow
from pipediag.session.store import load_session, save_session
from tests.factories import make_host_samples, make_session, make_step_rows


def with_session(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "session.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_file_and_a_directory_with_a_session_stand_for_themselves(tmp_path: Path) -> None:
    folder = with_session(tmp_path / "run")
    with_session(folder / "inner")
    assert session_paths(folder) == [folder]
    assert session_paths(folder / "session.json") == [folder / "session.json"]


def test_a_directory_of_runs_stands_for_each_in_their_order(tmp_path: Path) -> None:
    for name in ("run-10", "run-2", "run-1"):
        with_session(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in session_paths(tmp_path)] == ["run-1", "run-2", "run-10"]


def test_a_directory_without_any_is_told_by_whoever_reads_it(tmp_path: Path) -> None:
    assert session_paths(tmp_path) == [tmp_path]
    assert session_paths(tmp_path / "absent") == [tmp_path / "absent"]


def test_there_is_an_end_to_them(tmp_path: Path) -> None:
    for at in range(MOST + 5):
        with_session(tmp_path / f"run-{at}")
    assert len(session_paths(tmp_path)) == MOST


def test_of_a_hundred_long_runs_the_rows_of_one_are_held_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = make_session(step_rows=make_step_rows() * 20, host_samples=make_host_samples() * 20)
    for at in range(MOST):
        (tmp_path / f"run-{at}").mkdir()
        save_session(long, tmp_path / f"run-{at}")
    del long

    def alive() -> int:
        return sum(isinstance(one, StepRow | HostSample) for one in gc.get_objects())

    held: list[int] = []

    def load(path: Path, tell: object = None) -> Session:
        held.append(alive())
        return load_session(path)

    monkeypatch.setattr(repeats, "load_session", load)
    # Rows that other tests left in circles would go while these are held.
    gc.collect()
    before = alive()
    runs = load_runs([tmp_path])
    assert len(runs) == len(held) == MOST
    assert max(held) == alive() == before


def test_all_else_of_a_run_is_there() -> None:
    session = make_session()
    assert without_rows(session) == session.model_copy(update={"step_rows": [], "host_samples": []})
    assert session.step_rows


def test_a_session_that_is_named_twice_is_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run-1", "run-2"):
        (tmp_path / name).mkdir()
        save_session(make_session(), tmp_path / name)
    (tmp_path / "linked").symlink_to(tmp_path / "run-1")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    first, second = Path("run-1"), Path("run-2")
    again = [first / "session.json", tmp_path / "linked", tmp_path]

    assert [path for path, _ in load_runs([first, second, *again], tell=said.append)] == [
        first,
        second,
    ]
    assert said == ["pipediag: 5 of the 7 sessions are named twice, and are taken once."]
