"""A short look at the steps of a loop that evaluates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.watching import diagnosing as module
from pipediag.capture.watching.diagnosing import Evaluations
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


def test_of_a_handful_of_batches_nothing_is_said(stage: Stage) -> None:
    for _ in range(9):
        stage.steps(3)

    assert stage.loop.record.evaluation is None


def test_the_look_itself_is_no_time_of_the_scripts(stage: Stage) -> None:
    stage.reading_ns = 2 * MS
    consumer = stage.steps(33)
    stage.steps(1, consumer)

    assert stage.loop.last_ns == 33 * STEP_NS + 2 * MS
    assert stage.instruments.timeline.told == [("aside", "")]


def test_steps_of_two_evaluations_are_not_put_together(stage: Stage) -> None:
    stage.steps(20)
    stage.steps(19)

    assert stage.loop.record.evaluation is None
    stage.steps(20)
    assert evaluation_of(stage.loop) == (17, 17 * STEP_NS, [])


def test_a_pipeline_that_tells_nothing_has_its_steps_timed(stage: Stage) -> None:
    stage.steps(40)

    assert evaluation_of(stage.loop) == (32, 32 * STEP_NS, [])


def test_a_call_that_takes_several_batches_is_a_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch, batches_per_call=4)
    stage.runtime.models = [IteratorModel(list(range(100)), [], 0)]
    stage.steps(40)

    assert evaluation_of(stage.loop) == (128, 32 * STEP_NS, list(range(100)))


@pytest.mark.parametrize("role", ["adapt", "preview", "preparation"])
def test_loops_that_prepare_are_no_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    stage = Stage(tmp_path, monkeypatch, role=role)
    stage.steps(40)

    assert stage.loop.record.evaluation is None


def test_an_error_of_ours_is_noted_once_and_no_more_is_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> None:
        raise ValueError("no model")

    monkeypatch.setattr(stage.runtime, "model_of", fails)
    stage.steps(40)
    stage.steps(40)

    assert stage.loop.record.evaluation is None
    notes = stage.instruments.recorder.recording.notes
    assert len(notes) == 1
    assert "looking at an evaluation" in notes[0]
