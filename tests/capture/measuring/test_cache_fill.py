"""Whether steps wait to be measured until a cache is full, on loops made up by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.measuring import diagnosis as module
from pipediag.capture.measuring.diagnosis import Diagnosis, Phase
from pipediag.capture.measuring.pace import CacheFill
from pipediag.capture.recorder import Recorder
from pipediag.session.recorded_operations import RecordedOperation
from tests.capture.instruments import FakeInstruments, FakeSampler, consumer_of, training_loop
from tests.recordings import make_recorded_loop

SECOND = 1_000_000_000
OPERATIONS = [
    RecordedOperation("source", "from_tensor_slices", "source", "/home/me/train.py", 3),
    RecordedOperation("cache", "cache", "cache", "/home/me/train.py", 5, parent_ids=["source"]),
    RecordedOperation("batch", "batch", "batch", "/home/me/train.py", 6, parent_ids=["cache"]),
]


def fill(directory: Path, epochs: int | None = 5, root: str = "batch", **record: Any) -> CacheFill:
    recorder = Recorder(directory / "recording.json")
    recorder.recording.operations = list(OPERATIONS)
    keras = make_recorded_loop().keras
    assert keras is not None
    keras.epochs = epochs
    loop = training_loop(**{"root_op_id": root, "keras": keras, **record})
    return CacheFill(loop, recorder)


def test_steps_wait_while_the_first_of_several_epochs_fills_a_cache(tmp_path: Path) -> None:
    assert fill(tmp_path).awaited(0)


@pytest.mark.parametrize(
    "there",
    [
        {"epochs": 1},
        {"epochs": None},
        {"root": "source"},
        {"root": None},
        {"keras": None},
        {"keras": None, "planned_rounds": 1},
        {"seams": 1},
    ],
)
def test_they_wait_for_nothing_else(there: dict[str, Any], tmp_path: Path) -> None:
    assert not fill(tmp_path, **there).awaited(0)


def test_so_they_do_in_a_loop_of_the_scripts_own_that_comes_several_times(tmp_path: Path) -> None:
    assert fill(tmp_path, keras=None, planned_rounds=5).awaited(0)


def test_a_snapshot_is_a_cache_too(tmp_path: Path) -> None:
    filling = fill(tmp_path)
    filling._recorder.recording.operations[1] = replace(OPERATIONS[1], kind="snapshot")
    assert filling.awaited(0)


def test_a_long_epoch_is_measured_although_it_is_the_first(tmp_path: Path) -> None:
    filling = fill(tmp_path)

    assert filling.awaited(30 * SECOND - 1)
    assert not filling.awaited(30 * SECOND)


def test_steps_that_filled_it_are_not_taken_for_those_that_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "StackSampler", FakeSampler)
    instruments = FakeInstruments(tmp_path)
    instruments.recorder.recording.operations = list(OPERATIONS)
    keras = make_recorded_loop().keras
    assert keras is not None
    keras.epochs = 5
    loop = training_loop(root_op_id="batch", keras=keras)
    diagnosis, consumer = Diagnosis(loop, instruments.all), consumer_of(loop)

    def steps(count: int, *, first: bool = False) -> None:
        for number in range(count):
            diagnosis.boundary(consumer, 1 + number, 1, continuous=not (first and number == 0))

    steps(50, first=True)
    assert diagnosis.phase is Phase.WARMUP
    diagnosis.seam(consumer, exhausted=True)
    steps(2, first=True)
    assert diagnosis.phase is Phase.WARMUP
    assert len(diagnosis._since_trace) == 0
    steps(2)
    assert diagnosis.phase is Phase.BASELINE
