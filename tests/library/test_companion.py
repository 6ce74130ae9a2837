"""The companion process: what it makes of messages, and how the program starts and ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.library import companion_process
from pipediag.library.companion import CUT_OFF, Program, _follow, of_input_alone
from pipediag.library.companion_process import CompanionProcess, CompanionRequest
from pipediag.measures.verdict.decision import NOTHING_TRAINED
from pipediag.runner.child_process import ChildResult
from pipediag.session.messages import (
    Closing,
    Ended,
    FromChild,
    RunSettings,
    Started,
    encode,
)
from tests import factories


def _session_of(*messages: FromChild, pid: int) -> ChildResult:
    told, telling = os.pipe()
    for message in messages:
        os.write(telling, encode(message))
    request = CompanionRequest(pid, "capture", "directory", told, None, 0.0, began_ns=7)
    try:
        return _follow(
            Program(pid), request, on_started=lambda _: None, on_progress=lambda _: None,
            on_trials=None,
        )  # fmt: skip
    finally:
        os.close(told)
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
    told = of_input_alone(factories.make_session(run=factories.make_run()))

    for name in ("run", "breakdown", "perturbation", "differential", "ceiling"):
        assert getattr(told, name) is None
        assert getattr(told, f"{name}_missing") == NOTHING_TRAINED
    assert told.input_wait is None
    assert told.steps is not None
    assert told.pipeline is not None


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CompanionProcess:
    monkeypatch.setattr(companion_process, "_START", "import time; time.sleep(600)")
    settings = RunSettings("train.py", (), False, str(tmp_path), call="watch")
    return CompanionProcess(settings, tmp_path, budget_s=0.0)


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_session_that_does_not_come_is_given_up(
    stuck: CompanionProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(companion_process, "SESSION_LIMIT_S", 0.2)
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    began = time.monotonic()
    with pytest.raises(PipediagError, match="was not done after 0 s, and was ended"):
        stuck.finish()
    assert time.monotonic() - began < 60
    assert not is_there(stuck.process.pid)
    assert len(os.listdir("/proc/self/fd")) < before  # noqa: PTH208


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    told, telling = os.pipe()
    yield told, telling
    os.close(told)
    os.close(telling)
