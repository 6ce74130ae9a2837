from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.model_proto import NO_MODELS
from pipediag.capture.measuring.diagnosis import Diagnosis, Phase
from pipediag.capture.measuring.instruments import Instruments
from pipediag.capture.measuring.pace import Pace
from pipediag.capture.recorder import Recorder
from pipediag.session.settings import RunSettings

OPERATIONS = "tensorflow.python.ops.gen_experimental_dataset_ops"


@pytest.fixture
def operations(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(OPERATIONS)
    monkeypatch.setitem(sys.modules, OPERATIONS, module)
    return module


def notes_after_warm_up(directory: Path) -> list[str]:
    """What is noted of an iterator that gives no model."""
    recorder = Recorder(directory / "recording.json")
    settings = RunSettings("train.py", (), False, str(directory), warmup=1)
    nothing: Any = SimpleNamespace(append=lambda *_: None, script_is_profiling=False)
    instruments = Instruments(
        recorder, nothing, nothing, Pace(settings), nothing, lambda *_, **__: None
    )
    record = SimpleNamespace(id="loop1", steps=0, planned_steps=None, batches_per_call=1, line=1)
    clock = SimpleNamespace(set_aside=lambda ns: None)
    loop: Any = SimpleNamespace(record=record, ordinal=0, clock=clock)
    consumer: Any = SimpleNamespace(iterator=lambda: None, hand_over="next", batches=0, ordinal=1)
    diagnosis = Diagnosis(loop, instruments)
    for now_ns in (0, 10, 20):
        diagnosis.boundary(consumer, now_ns, 1, continuous=now_ns > 0)
    assert diagnosis.phase is Phase.BASELINE
    return recorder.recording.notes


def test_a_tensorflow_without_models_is_noted(tmp_path: Path, operations: ModuleType) -> None:
    assert notes_after_warm_up(tmp_path) == [NO_MODELS]


def test_an_iterator_without_a_model_is_not(tmp_path: Path, operations: Any) -> None:
    operations.iterator_get_model_proto = None

    assert notes_after_warm_up(tmp_path) == []
