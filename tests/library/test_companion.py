"""The companion's half of a measurement, told by a thread that stands for the program."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from pipediag.library.companion import CUT_OFF, GONE, Program, _follow
from pipediag.library.request import CompanionRequest
from pipediag.runner.child_connection import CommandPipe, MessageReader, OnTrials
from pipediag.runner.child_process import ChildResult, follow
from pipediag.session.messages import (
    Closing,
    Ended,
    EndTrials,
    FromChild,
    Started,
    TrialsAwaited,
    encode,
)


class NoSignals:
    def to_forward(self) -> tuple[int, ...]:
        return ()


def followed(
    *messages: FromChild, on_trials: OnTrials | None = None
) -> tuple[ChildResult, list[bytes]]:
    """What comes of it, and what the program was asked while its loop waited."""
    told, telling = os.pipe()
    asked, asking = os.pipe()
    program = Program(os.getppid())
    commands = CommandPipe(asking)
    heard: list[bytes] = []

    def speak() -> None:
        for message in messages:
            os.write(telling, encode(message))
            if isinstance(message, TrialsAwaited):
                heard.append(os.read(asked, 1 << 16))

    def follows(message: object) -> None:
        if isinstance(message, Closing):
            program.measured()

    speaker = threading.Thread(target=speak)
    speaker.start()
    try:
        result = follow(
            program,
            MessageReader(told),
            NoSignals(),
            commands,
            on_started=lambda _: None,
            on_progress=follows,
            on_trials=on_trials,
        )
    finally:
        commands.close()
        speaker.join()
        for descriptor in (told, telling, asked):
            os.close(descriptor)
    return result, heard


def test_a_program_that_is_measured_goes_on() -> None:
    result, _ = followed(Started(), Ended("stopped", None), Closing())
    assert result.outcome == "stopped"
    assert result.script_status is None


def test_what_the_work_raised_is_told() -> None:
    result, _ = followed(Started(), Ended("raised", 1, "ValueError: no"), Closing())
    assert (result.outcome, result.detail) == ("raised", "ValueError: no")


def test_a_loop_that_waits_is_asked_and_let_go() -> None:
    waiting = TrialsAwaited("loop1", alone=False, more_to_come=False, since_ns=1)
    heard: list[TrialsAwaited] = []
    _, asked = followed(
        Started(),
        waiting,
        Ended("stopped", None),
        Closing(),
        on_trials=lambda awaited, _: heard.append(awaited),
    )
    assert heard == [waiting]
    assert asked == [encode(EndTrials())]


def test_a_program_that_is_gone_is_not_waited_for() -> None:
    program = Program(os.getppid() + 1_000_000)
    assert program.is_gone
    assert program.poll() == GONE


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


def test_nothing_is_done_to_the_program() -> None:
    program = Program(os.getppid())
    program.kill()
    program.send_signal(9)
    assert program.poll() is None
    program.measured()
    assert (program.poll(), program.wait()) == (0, 0)


def test_a_request_comes_back_as_it_was(tmp_path: Path) -> None:
    request = CompanionRequest(1, "capture", "directory", 3, None, 2.5, began_ns=7, kept=True)
    request.write(tmp_path / "request.json")
    assert CompanionRequest.read(tmp_path / "request.json") == request


@pytest.fixture(autouse=True)
def _no_descriptor_is_left() -> object:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    yield None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
