from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.loops.stand_in import StandIn
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.recorder import Recorder
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.session.messages import FromChild, TrialsAwaited


class SilentParent:
    """A parent that asks for no trial."""

    def next(self) -> None:
        return None


class Stage:
    def __init__(self, directory: Path) -> None:
        self.recorder = Recorder(directory / "recording.json")
        self.told: list[FromChild] = []
        commands: Any = SilentParent()
        instruments: Any = SimpleNamespace(
            recorder=self.recorder,
            tell=self.told.append,
            state=KeptState(Guard(self.recorder.note)),
        )
        self.held = HeldLoops(commands, instruments, run_to_end=False)
        record = SimpleNamespace(id="loop1", kind="keras", batches_per_call=1, untried=None)
        self.loop: Any = SimpleNamespace(record=record, dataset=None, model=None)

    def hold(self) -> bool:
        consumer: Any = SimpleNamespace(distributed=False, stand_in=StandIn())
        return self.held.hold(self.loop, consumer, goes_on=False)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    class NoDevices:
        def __init__(self) -> None: ...

    monkeypatch.setattr("pipediag.capture.trying.answering.DeviceClock", NoDevices)
    return Stage(tmp_path)


def test_a_fit_whose_steps_repeat_is_held(stage: Stage) -> None:
    with stage.held.in_epoch():
        stage.hold()

    assert [type(message) for message in stage.told] == [TrialsAwaited]
    assert stage.held.was_held(stage.loop)
    assert stage.loop.record.untried is None


def test_a_fit_whose_steps_do_not_repeat_keeps_all_of_them(stage: Stage) -> None:
    assert not stage.hold()
    assert stage.told == []
    assert not stage.held.was_held(stage.loop)
    assert "nothing was tried in the running `fit`" in stage.loop.record.untried


def test_a_loop_of_the_scripts_own_needs_no_epoch_of_keras(stage: Stage) -> None:
    stage.loop.record.kind = "eager"
    stage.hold()

    assert [type(message) for message in stage.told] == [TrialsAwaited]
