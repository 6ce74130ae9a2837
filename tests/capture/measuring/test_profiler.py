"""Our sessions of TensorFlow's profiler, played by one that a signal comes in the middle of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.measuring.profiler import Profiler
from pipediag.capture.recorder import Recorder
from tests.capture.preempted import PreemptedError, handles_signals, signal_arrives


class Session:
    """TensorFlow's."""

    def __init__(self) -> None:
        self.start: Any = lambda *_: None
        self.export_to_tb: Any = lambda: None


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def profiler(session: Session, tmp_path: Path) -> Profiler:
    recorder = Recorder(tmp_path / "recording.json")
    made = Profiler(recorder, tmp_path)
    native = SimpleNamespace(ProfilerSession=lambda: session)
    made.install(SimpleNamespace(_pywrap_profiler=native, _profiler=None), Guard(recorder.note))
    return made


def test_what_a_signal_handler_raises_is_not_why_there_is_no_profile(
    profiler: Profiler, session: Session
) -> None:
    session.start = signal_arrives
    with handles_signals(), pytest.raises(PreemptedError):
        profiler.start("loop1")
    assert not profiler.running


def test_an_error_of_the_profilers_is(profiler: Profiler, session: Session) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space")

    session.start = full
    assert profiler.start("loop1") == "TensorFlow's profiler did not start: no space"
