"""A watch that cannot measure or is interrupted, and the companion process of a measurement."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import pipediag
from pipediag.capture.link import how_it_ended
from pipediag.errors import PipediagError
from pipediag.library import measurement
from pipediag.library import watch as watching
from pipediag.library.companion import CUT_OFF, Program, _follow, of_input_alone
from pipediag.library.measurement import CompanionProcess, CompanionRequest
from pipediag.library.result import Result
from pipediag.measures.verdict.decision import NOTHING_TRAINED
from pipediag.session.messages import (
    ChildResult,
    Closing,
    Ended,
    FromChild,
    RunSettings,
    Started,
    encode,
)
from tests import factories
from tests.factories import make_session


@pytest.fixture(autouse=True)
def no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of the same process may have imported what the command runs scripts with."""
    monkeypatch.delitem(sys.modules, "pipediag.child", raising=False)


def test_an_error_of_ours_is_one_line_and_not_the_trainings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
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
    assert watch.result_missing.startswith("this program is run by `pipediag analyze`")
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_directory_of_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pipediag.watch(tmp_path) as watch:
        pass
    assert watch.result_missing == (
        f"{tmp_path} is not empty and holds no pipediag report. Nothing was measured. "
        "Choose another directory (`--output`, or `out` in Python)."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert not measurement._LOCK.locked()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_number_that_nobody_can_be_given_is_refused() -> None:
    with pytest.raises(ValueError, match="steps is "):
        pipediag.watch(steps=0)


@pytest.mark.parametrize("half_imported", [False, True])
def test_a_callback_without_keras_is_refused(
    monkeypatch: pytest.MonkeyPatch, half_imported: bool
) -> None:
    for name in ("keras", "tf_keras"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    if half_imported:
        monkeypatch.setitem(sys.modules, "keras", ModuleType("keras"))
    with pytest.raises(PipediagError, match="Keras is not imported"):
        pipediag.callback()


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Calls of a measurement in the place of the real one."""
    log: list[str] = []

    class Logged:
        def __init__(self, *_: object, **__: object) -> None: ...

        def leave(self, how: Ended) -> None:
            log.append(how.outcome)

        def finish(self) -> Result:
            return Result(make_session(), None)

        def give_up(self) -> None:
            log.append("given up")

    monkeypatch.setattr(watching, "Measurement", Logged)
    return log


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


def _session_of(*messages: FromChild, pid: int) -> ChildResult:
    reading, telling = os.pipe()
    for message in messages:
        os.write(telling, encode(message))
    request = CompanionRequest(pid, "capture", "directory", reading, None, 0.0, began_ns=7)
    try:
        return _follow(
            Program(pid), request, on_started=lambda _: None, on_progress=lambda _: None,
            on_trials=None,
        )  # fmt: skip
    finally:
        os.close(reading)
        os.close(telling)


def test_a_measurement_lasts_from_when_the_program_began_it() -> None:
    ended = Ended("raised", 1, "ValueError: no")
    result = _session_of(Started(), ended, Closing(), pid=os.getppid())
    assert (result.outcome, result.script_status, result.detail) == ("raised", 1, ended.error)
    assert result.started_ns == 7


def test_a_program_that_was_gone_too_soon_was_killed() -> None:
    result = _session_of(Started(), pid=os.getppid() + 1_000_000)
    assert (result.outcome, result.script_status, result.detail) == ("killed", None, CUT_OFF)


@pytest.fixture(autouse=True)
def _no_descriptor_is_left() -> object:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    yield None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_shares_of_a_step_and_gains_of_a_run_are_missing_with_the_reason() -> None:
    result = of_input_alone(factories.make_session(run=factories.make_run()))

    for name in ("run", "breakdown", "perturbation", "ceiling"):
        assert getattr(result, f"{name}_missing") == NOTHING_TRAINED
    for name in ("run", "breakdown", "input_wait", "perturbation", "differential", "ceiling"):
        assert getattr(result, name) is None
    assert result.steps is not None
    assert result.pipeline is not None


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompanionProcess:
    monkeypatch.setattr(measurement, "_START", "import time; time.sleep(600)")
    settings = RunSettings("train.py", (), False, str(tmp_path), call="watch")
    return CompanionProcess(settings, tmp_path, budget_s=0.0)


def test_a_session_that_does_not_come_is_given_up(
    stuck: CompanionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "SESSION_LIMIT_S", 0.2)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    began = time.monotonic()
    with pytest.raises(PipediagError, match="did not end within 0 s and was killed"):
        stuck.finish()
    assert time.monotonic() - began < 60
    assert not Path(f"/proc/{stuck.process.pid}").exists()
    assert len(os.listdir("/proc/self/fd")) < before  # noqa: PTH208
