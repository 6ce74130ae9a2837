from __future__ import annotations

import gc
from pathlib import Path

import pytest

from pipediag.capture.stop_script import StopScript
from pipediag.capture.watching.diagnosing import Stopping
from pipediag.session import messages
from pipediag.session.recorded_windows import RecordedBlock, RecordedWindow
from pipediag.session.settings import RunSettings
from tests.capture.instruments import FakeInstruments, training_loop


class Ends:
    """How a script ends, and what is done for that."""

    def __init__(self, directory: Path, *, run_to_end: bool = False) -> None:
        self.instruments = FakeInstruments(directory)
        settings = RunSettings("train.py", (), False, str(directory), run_to_end=run_to_end)
        self.left = False
        self.instruments.all.running_pipelines = lambda: ["handle"]
        self.kept = 0
        self.stopping = Stopping(self.instruments.all, settings, self.leave, self.keep)

    def leave(self) -> None:
        self.left = True

    def keep(self) -> None:
        self.kept += 1

    def disturb(self) -> None:
        """Steps on a repeated batch were made."""
        window = RecordedWindow("repeat", "loop1", 0, 1, complete=False)
        window.blocks.append(RecordedBlock())
        self.instruments.recorder.recording.windows.append(window)


@pytest.fixture
def ends(tmp_path: Path) -> Ends:
    return Ends(tmp_path)


def test_a_script_is_stopped_where_its_loop_would_take_long(ends: Ends) -> None:
    with pytest.raises(StopScript):
        ends.stopping.go_on_or_stop(training_loop())

    assert ends.instruments.events == [messages.Stopping]
    assert ends.instruments.recorder.recording.stop_reason == "enough was measured"
    assert ends.stopping.kept_alive == ["handle"]
    assert ends.kept == 1


def test_what_training_had_reached_is_put_back_before_the_script_is_stopped(ends: Ends) -> None:
    ends.instruments.state.keep()
    with pytest.raises(StopScript):
        ends.stopping.stop()

    assert not ends.instruments.state.kept


def test_what_its_exit_would_take_is_told_by_a_collection_of_garbage(ends: Ends) -> None:
    recording = ends.instruments.recorder.recording
    ends.stopping.time_a_collection()
    took_ns = recording.collection_ns
    with pytest.raises(StopScript):
        ends.stopping.stop()

    assert took_ns is not None
    assert took_ns > 0
    assert recording.collection_ns == took_ns


def test_where_nothing_is_collected_nothing_is_told(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "isenabled", lambda: False)
    with pytest.raises(StopScript):
        ends.stopping.stop()

    assert ends.instruments.recorder.recording.collection_ns is None


def test_a_program_that_goes_on_has_no_exit(tmp_path: Path) -> None:
    instruments = FakeInstruments(tmp_path)
    settings = RunSettings("train.py", (), False, str(tmp_path))
    stopping = Stopping(instruments.all, settings, None, lambda: None)
    for _ in range(2):
        with pytest.raises(StopScript):
            stopping.stop()

    assert instruments.recorder.recording.collection_ns is None


def test_a_script_that_swallows_its_stop_is_left_by_force(ends: Ends) -> None:
    for left in (False, True):
        with pytest.raises(StopScript):
            ends.stopping.stop()
        assert ends.left is left


def test_a_short_rest_is_waited_for_and_the_wait_is_not_prolonged(ends: Ends) -> None:
    ends.instruments.pace.ends = False
    ends.stopping.go_on_or_stop(training_loop())
    deadline_ns = ends.stopping.deadline_ns
    ends.stopping.go_on_or_stop(training_loop(2))

    assert deadline_ns is not None
    assert ends.stopping.deadline_ns == deadline_ns


def test_a_script_whose_model_was_disturbed_is_stopped_however_short_its_rest(
    ends: Ends,
) -> None:
    ends.instruments.pace.ends = False
    ends.stopping.stop_the_disturbed()
    ends.disturb()

    assert not ends.stopping.goes_on_after(training_loop())
    with pytest.raises(StopScript):
        ends.stopping.stop_the_disturbed()


def test_a_script_that_runs_to_its_end_is_never_stopped_for_what_was_measured(
    tmp_path: Path,
) -> None:
    ends = Ends(tmp_path, run_to_end=True)
    ends.disturb()
    ends.stopping.go_on_or_stop(training_loop())
    ends.stopping.stop_the_disturbed()

    assert ends.stopping.goes_on_after(training_loop())
    assert ends.stopping.deadline_ns is None
