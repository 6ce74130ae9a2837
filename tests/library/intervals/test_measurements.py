"""Which measurement begins and ends when, with some that measure nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pipediag
from pipediag.errors import PipediagError
from pipediag.library.intervals import measurements
from pipediag.library.result import Result
from pipediag.session.messages import Ended
from tests.factories import make_session

LIMIT_S = 20.0


class Measured:
    """Stands for one: the test says when its loop is measured."""

    made: list[Measured]
    begun: threading.Semaphore
    fails: PipediagError | None
    lost: PipediagError | None

    def __init__(
        self, wishes: Any, *, interval: int, when_measured: Callable[[], None], **_: object
    ) -> None:
        if Measured.fails is not None:
            raise Measured.fails
        self.out, self.interval, self.enough = wishes.out, interval, when_measured
        self.log: list[object] = []
        Measured.made.append(self)
        Measured.begun.release()

    def leave(self, ended: Ended, *, when_wanted: object = None) -> None:
        self.log.append(ended.outcome)

    def give_up(self) -> None:
        self.log.append("given up")

    def finish(self) -> Result:
        self.log.append("finished it")
        if Measured.lost is not None:
            raise Measured.lost
        if self.out is not None:
            self.out.mkdir(parents=True)
        return Result(make_session(), self.out)


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    Measured.made, Measured.begun = [], threading.Semaphore(0)
    Measured.fails = Measured.lost = None
    monkeypatch.setattr(measurements, "Alongside", Measured)


def begun() -> Measured:
    """The one that has begun by now, or begins soon."""
    assert Measured.begun.acquire(timeout=LIMIT_S)
    return Measured.made[-1]


def test_one_follows_another_and_each_is_kept(tmp_path: Path) -> None:
    with pipediag.watch(tmp_path, every=0.01) as watching:
        begun().enough()
        begun().enough()
        last = begun()
    assert [one.interval for one in Measured.made] == [1, 2, 3]
    assert [one.log for one in Measured.made] == [
        ["finished", "finished it"],
        ["finished", "finished it"],
        ["finished", "given up"],
    ]
    assert watching.result is not None
    assert watching.result.directory == tmp_path / "interval-2"
    assert last.out == tmp_path / "interval-3"
    rows = (tmp_path / "intervals.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows] == ["interval", "1", "2"]


def test_nothing_is_at_work_until_the_next_is_due(tmp_path: Path) -> None:
    with pipediag.watch(tmp_path, every="1h") as watching:
        begun().enough()
    [only] = Measured.made
    assert only.log == ["finished", "finished it"]
    assert watching.result is not None


def test_a_training_that_is_over_sooner_has_the_first_measurement(tmp_path: Path) -> None:
    with pipediag.watch(tmp_path, every="1h") as watching:
        pass
    assert Measured.made[0].log == ["finished", "finished it"]
    assert watching.result is not None


def test_what_could_not_begin_is_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pipediag.watch(tmp_path, every=0.01):
        first = begun()
        Measured.fails = PipediagError("another analysis is under way.")
        first.enough()
        while "another analysis" not in capsys.readouterr().err:
            threading.Event().wait(0.01)
        Measured.fails = None
        assert begun().interval == 2


def test_a_session_that_could_not_be_made_costs_that_one_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Measured.lost = PipediagError("no session could be made of what was measured.")
    with pipediag.watch(tmp_path, every=0.01) as watching:
        begun().enough()
        second = begun()
        Measured.lost = None
        second.enough()
        begun()
    assert watching.result is not None
    assert watching.result.directory == tmp_path / "interval-2"
    assert "no session could be made" in capsys.readouterr().err


def test_where_none_came_to_its_end_the_reason_is_said(tmp_path: Path) -> None:
    Measured.lost = PipediagError("no session could be made of what was measured.")
    with pipediag.watch(tmp_path, every=0.01) as watching:
        begun().enough()
        begun()
    assert watching.result is None
    assert watching.result_missing == "no session could be made of what was measured."


def test_a_loop_that_is_measured_as_its_block_ends_is_measured_once(tmp_path: Path) -> None:
    with pipediag.watch(tmp_path, every="1h"):
        first = begun()
    first.enough()
    assert first.log == ["finished", "finished it"]


def test_figures_go_out_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []

    class Exports:
        def write(self, _: object, number: int) -> None:
            written.append(number)

    monkeypatch.setattr("pipediag.library.watching.exports", lambda *_: Exports())
    with pipediag.watch(every=0.01, tensorboard="logs"):
        begun().enough()
        begun().enough()
        begun()
    assert written == [1, 2]


def test_a_report_of_one_measurement_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "session.json").touch()
    with pipediag.watch(tmp_path, every="30m") as watching:
        trained = True
    assert trained
    assert watching.result_missing is not None
    assert "holds the report of a single measurement" in watching.result_missing
    assert not Measured.made
    assert len(capsys.readouterr().err.splitlines()) == 1
