"""A watch that cannot measure or is interrupted: the training goes on."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import pipediag
from pipediag.capture.link import how_it_ended
from pipediag.errors import PipediagError
from pipediag.library import measurement
from pipediag.library import watch as watching
from pipediag.library.result import Result
from pipediag.session.messages import Ended
from tests.factories import make_session


@pytest.fixture(autouse=True)
def no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the same process may have imported what the command runs scripts with."""
    monkeypatch.delitem(sys.modules, "pipediag.child", raising=False)


def test_an_error_of_ours_is_one_line_and_not_the_trainings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no processes left")

    monkeypatch.setattr(watching, "Measurement", fails)
    with pipediag.watch() as watch:
        trained = True
    assert trained
    assert watch.result is None
    assert watch.result_missing == (
        "Pipediag stopped measuring after an error of its own, which the script did not see: "
        "OSError: no processes left"
    )
    assert capsys.readouterr() == ("", f"pipediag: {watch.result_missing}\n")


def test_what_the_command_runs_is_measured_by_the_command_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pipediag.child", sys)
    with pipediag.watch() as watch:
        pass
    assert watch.result_missing is not None
    assert watch.result_missing.startswith("this program is run by `pipediag analyze`")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_directory_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pipediag.watch(tmp_path) as watch:
        pass
    assert watch.result_missing == (
        f"{tmp_path} is not empty and holds no pipediag report. Nothing is measured. "
        "Choose another directory with `out`."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    measurement.acquire()  # it was given back
    measurement.release()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_number_that_nobody_can_be_given_is_refused() -> None:
    with pytest.raises(ValueError, match="steps is "):
        pipediag.watch(steps=0)


class Fit(watching.Fit):
    """A call of Keras's that is over."""

    def __init__(self) -> None:
        self.gone: list[Callable[[], None]] = []

    def runs(self) -> bool:
        return False

    def when_gone(self, call: Callable[[], None]) -> None:
        self.gone.append(call)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls of a measurement in the place of the real one."""
    log: list[str] = []

    class Logged:
        def __init__(self, *_: object) -> None: ...

        def leave(self, how: Ended) -> None:
            log.append(how.outcome)

        def finish(self) -> Result:
            return Result(make_session(), None)

        def step_aside(self) -> None:
            log.append("stepped aside")

        def give_up(self) -> None:
            log.append("given up")

        def fit_goes_on(self) -> None: ...

    monkeypatch.setattr(watching, "Measurement", Logged)
    return log


def test_one_block_in_another_of_the_same_watch_is_one(log: list[str]) -> None:
    with pipediag.watch() as watch, watch:
        pass
    assert log == ["finished"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_exception_ends_it_and_passes(log: list[str], error: type[BaseException]) -> None:
    watch = pipediag.watch()
    with pytest.raises(error), watch:
        raise error
    assert log == [how_it_ended(error()).outcome]
    assert watch.result is not None
    assert watch.result_missing is None


def test_what_can_not_be_left_is_given_up(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(watching.Measurement, "leave", interrupted)
    with pytest.raises(KeyboardInterrupt), pipediag.watch():
        raise ZeroDivisionError
    assert log == ["given up"]
    assert not measurement._at_exit


def test_a_fit_that_raised_is_ended_when_its_result_is_asked_for(log: list[str]) -> None:
    fit, watch = Fit(), pipediag.watch()
    watch.begin(fit)
    fit.gone[0]()
    assert log == ["stepped aside"]
    assert watch.result is not None
    assert log == ["stepped aside", "raised"]


def test_a_fit_that_raised_is_ended_at_the_exit(log: list[str]) -> None:
    pipediag.watch().begin(Fit())
    measurement._end_all()
    assert log == ["raised"]


def test_how_a_block_was_left() -> None:
    assert how_it_ended(None) == Ended("finished", 0)
    assert how_it_ended(SystemExit(3)) == Ended("exited", 3)
    assert how_it_ended(SystemExit("no")) == Ended("exited", 1)
    assert how_it_ended(SystemExit()) == Ended("exited", 0)
    assert how_it_ended(KeyboardInterrupt()) == Ended(
        "interrupted", -signal.SIGINT, "KeyboardInterrupt: "
    )
    assert how_it_ended(ValueError("no")) == Ended("raised", 1, "ValueError: no")


def test_who_waits_for_its_turn_ends_what_is_over() -> None:
    ended: list[str] = []

    def end_if_over() -> None:
        ended.append("the first")
        measurement.release()

    measurement.acquire(end_if_over)
    measurement.acquire()
    with pytest.raises(PipediagError, match="another analysis is running"):
        measurement.acquire()
    measurement.release()
    assert ended == ["the first"]


def test_a_callback_needs_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("keras", "tf_keras"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(PipediagError, match="Keras is not imported"):
        pipediag.callback()
