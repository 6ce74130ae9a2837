"""What a watch does where nothing can be measured: nothing, and the training goes on."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

import pipediag
from pipediag.errors import PipediagError
from pipediag.library import one_at_a_time, watching
from pipediag.library.watching import how_it_ended
from pipediag.session.messages import Ended


@pytest.fixture(autouse=True)
def no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the same process may have imported what the command runs scripts with."""
    monkeypatch.delitem(sys.modules, "pipediag.child", raising=False)


def test_an_error_of_ours_is_one_line_and_not_the_trainings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise OSError("no processes left")

    monkeypatch.setattr(watching, "Alongside", fails)
    with pipediag.watch() as watch:
        trained = True
    assert trained
    assert watch.result is None
    assert watch.result_missing == (
        "Pipediag stopped measuring after an error of its own, which the script did not see: "
        "OSError: no processes left"
    )
    assert capsys.readouterr() == ("", f"pipediag: {watch.result_missing}\n")


def test_a_session_that_can_not_be_made_is_no_error_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ends:
        def __init__(self, *_: object) -> None: ...

        def end(self, _: Ended) -> None:
            raise PipediagError("no session could be made of what was measured.")

    monkeypatch.setattr(watching, "Alongside", Ends)
    with pytest.raises(ZeroDivisionError), pipediag.watch() as watch:
        raise ZeroDivisionError
    assert watch.result_missing == "no session could be made of what was measured."
    assert len(capsys.readouterr().err.splitlines()) == 1


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
    one_at_a_time.take_turn()  # it was given back
    one_at_a_time.give_turn_back()
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("budget", -1.0), ("steps", 0), ("warmup", -1), ("profile_steps", -1)]
)
def test_a_number_that_nobody_can_be_given_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is "):
        pipediag.watch(**{name: value})  # type: ignore[arg-type]


def test_one_block_in_another_of_the_same_watch_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[Ended] = []

    class Ends:
        def __init__(self, *_: object) -> None: ...

        def end(self, how: Ended) -> None:
            ended.append(how)

    monkeypatch.setattr(watching, "Alongside", Ends)
    with pipediag.watch() as watch, watch:
        pass
    assert ended == [Ended("finished", 0)]


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
        one_at_a_time.give_turn_back()

    one_at_a_time.take_turn(end_if_over)
    one_at_a_time.take_turn()
    with pytest.raises(PipediagError, match="another analysis is under way"):
        one_at_a_time.take_turn()
    one_at_a_time.give_turn_back()
    assert ended == ["the first"]


def test_a_callback_needs_keras(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("keras", "tf_keras"):
        monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(PipediagError, match="Keras is not imported"):
        pipediag.callback()
