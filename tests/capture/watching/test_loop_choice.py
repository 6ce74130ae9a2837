"""A short look at the steps of a loop that evaluates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.watching import loop_choice as module
from pipediag.capture.watching.loop_choice import Evaluations, Stopping
from pipediag.session import messages
from pipediag.session.messages import RunSettings
from pipediag.session.recording import RecordedBlock, RecordedWindow
from tests.capture.instruments import FakeInstruments, consumer_of, training_loop
from tests.capture.runtimes import ToyRuntime

MS = 1_000_000
STEP_NS = 5 * MS
GAPS = [900_000, 2_000, *[3_000] * 32]
"""In the first the step was traced."""


class Stage:
    """A loop that evaluates, step by step."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, **record: Any) -> None:
        self.instruments = FakeInstruments(path)
        self.evaluations = Evaluations(self.instruments.all)
        self.loop = training_loop(**{"role": "validation", **record})
        self.runtime = ToyRuntime()
        self.loop.runtime = self.runtime
        self.now = 0
        self.reading_ns = 0
        monkeypatch.setattr(module.time, "monotonic_ns", lambda: self.now + self.reading_ns)

    def steps(self, count: int, consumer: Consumer | None = None) -> Consumer:
        consumer = consumer or consumer_of(self.loop)
        for _ in range(count):
            self.loop.last_ns = self.now
            self.evaluations.step(consumer, self.now)
            self.now += STEP_NS
        return consumer


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def evaluation_of(loop: Loop) -> tuple[int, int, list[int]] | None:
    seen = loop.record.evaluation
    return None if seen is None else (seen.batches, seen.elapsed_ns, seen.gaps_us)


def test_after_its_first_steps_an_evaluation_is_looked_at_once(stage: Stage) -> None:
    stage.runtime.models = [IteratorModel(list(GAPS), [], 0)]
    stage.steps(33)
    assert stage.loop.record.evaluation is None
    stage.now = 0
    stage.steps(100)

    assert evaluation_of(stage.loop) == (31, 31 * STEP_NS, [3_000] * 31)
    assert stage.runtime.models == []


def test_of_short_evaluations_the_second_tells_as_much_as_it_has(stage: Stage) -> None:
    stage.runtime.models = [IteratorModel([900_000, *[3_000] * 8], [], 0)]
    stage.steps(8)
    stage.steps(8)

    assert evaluation_of(stage.loop) == (6, 6 * STEP_NS, [3_000] * 6)


def test_steps_of_two_evaluations_are_not_put_together(stage: Stage) -> None:
    stage.steps(20)
    stage.steps(19)

    assert stage.loop.record.evaluation is None
    stage.steps(20)
    assert evaluation_of(stage.loop) == (17, 17 * STEP_NS, [])


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


def test_what_its_exit_would_take_is_told_by_a_collection_of_garbage(ends: Ends) -> None:
    recording = ends.instruments.recorder.recording
    ends.stopping.time_a_collection()
    took_ns = recording.collection_ns
    with pytest.raises(StopScript):
        ends.stopping.stop()

    assert took_ns is not None
    assert took_ns > 0
    assert recording.collection_ns == took_ns


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
