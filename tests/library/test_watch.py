"""A watch that cannot measure, is interrupted, or waits: the training goes on."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import pipediag
from pipediag.errors import PipediagError
from pipediag.library import measurement
from pipediag.library import watch as watching
from pipediag.library.result import Result
from pipediag.library.watch import OwnThread, how_it_ended
from pipediag.session.messages import Ended
from tests.factories import make_session

LIMIT_S = 60
"""A lock that is not given back must fail a test, not hang it."""


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


def test_one_block_in_another_of_the_same_watch_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Ended] = []

    class Ends:
        def __init__(self, *_: object) -> None: ...

        def leave(self, how: Ended, **_: object) -> None:
            ended.append(how)

        def finish(self) -> Result:
            return Result(make_session(), None)

    monkeypatch.setattr(watching, "Measurement", Ends)
    with pipediag.watch() as watch, watch:
        pass
    assert ended == [Ended("finished", 0)]


class Slow:
    """A measurement whose session is made when the test says so."""

    def __init__(self, *_: object) -> None:
        self.log: list[object] = []
        self.may_finish = threading.Event()
        self.finishes = threading.Event()
        self.may_leave = threading.Event()
        self.may_leave.set()

    def step_aside(self) -> None:
        self.log.append("stepped aside")

    def leave(self, how: Ended, *, when_wanted: Callable[[], None] | None) -> None:
        if when_wanted is not None:
            measurement.when_another_begins(when_wanted)
        assert self.may_leave.wait(LIMIT_S)
        self.log.append(how.outcome)

    def finish(self) -> Result:
        self.finishes.set()
        assert self.may_finish.wait(LIMIT_S)
        return Result(make_session(), None)

    def give_up(self) -> None:
        self.log.append("given up")

    def fit_goes_on(self) -> None: ...


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    slow = Slow()
    monkeypatch.setattr(watching, "Measurement", lambda *_: slow)
    return slow


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_exception_is_not_kept_waiting_for_the_session(
    slow: Slow, error: type[BaseException]
) -> None:
    watch = pipediag.watch()
    with pytest.raises(error), watch:
        raise error
    # Here the program saves what it has, with no hook of ours.
    assert slow.log == [how_it_ended(error()).outcome]
    assert slow.finishes.wait(LIMIT_S)
    slow.may_finish.set()
    assert watch.result is not None
    assert watch.result_missing is None


def test_another_measurement_waits_for_the_one_that_an_exception_has_ended(slow: Slow) -> None:
    with pytest.raises(ZeroDivisionError), pipediag.watch() as watch:
        raise ZeroDivisionError
    threading.Timer(0.05, slow.may_finish.set).start()
    measurement.acquire()
    measurement.release()
    assert watch._result is not None


def test_the_programs_exit_waits_too(slow: Slow) -> None:
    with pytest.raises(ZeroDivisionError), pipediag.watch() as watch:
        raise ZeroDivisionError
    threading.Timer(0.05, slow.may_finish.set).start()
    measurement._end_all()
    assert watch._result is not None
    assert not measurement._at_exit


def test_what_can_not_be_left_is_given_up(slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(slow, "leave", interrupted)
    with pytest.raises(KeyboardInterrupt), pipediag.watch():
        raise ZeroDivisionError
    assert slow.log == ["given up"]
    assert not measurement._at_exit


class Fit(watching.Fit):
    """A call of Keras's, which goes when the test says so."""

    def __init__(self) -> None:
        self.gone: list[Callable[[], None]] = []

    def runs(self) -> bool:
        return False

    def when_gone(self, call: Callable[[], None]) -> None:
        self.gone.append(call)


def test_where_python_loses_ctrl_c_nothing_is_waited_for(slow: Slow) -> None:
    fit, watch = Fit(), pipediag.watch()
    watch.begin(fit)
    slow.may_leave.clear()
    fit.gone[0]()
    assert slow.log == ["stepped aside"]
    slow.may_leave.set()
    slow.may_finish.set()
    assert watch.result is not None
    assert slow.log == ["stepped aside", "raised"]
    fit.gone[0]()
    assert len(slow.log) == 2


def test_a_fit_whose_frames_live_on_to_the_exit_is_ended_there(slow: Slow) -> None:
    watch = pipediag.watch()
    watch.begin(Fit())
    slow.may_finish.set()
    measurement._end_all()
    assert watch.result is not None
    assert slow.log == ["raised"]


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


def test_the_program_counts_its_own_threads_alone() -> None:
    before, seen, go = threading.enumerate(), threading.Event(), threading.Event()

    def works() -> None:
        seen.set()
        go.wait(10)

    thread = OwnThread(works)
    assert seen.wait(10)
    assert threading.enumerate() == before
    go.set()
    thread.join()
