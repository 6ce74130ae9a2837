"""Whether a loop only reads its data, told from its source."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from pipediag.capture.loops.source import only_reads

READS = [
    "total = len(list(data))",
    "total = sum(1 for _ in data)",
    "labels = np.concatenate([y.numpy() for y in data])",
    "held = {key: value for key, value in data}",
    "total = len(\n    list(\n        data\n    )\n)",
    "for batch in data:\n    total += len(batch)\n    seen.append(batch.numpy())",
    "for batch in data:\n    pass",
]
EVALUATES = [
    "for batch in data:\n    total += model(batch)",
    "scores = [model(batch) for batch in data]",
    "for batch in list(data):\n    model.predict(batch)",
    "scores = {key: metric.update_state(key) for key, _ in data}",
    "it = iter(data)",
]


class Data:
    """Tells whose line goes through it, at the first batch that is asked for."""

    def __init__(self, script: Path) -> None:
        self.script = str(script)
        self.told: list[bool] = []

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        assert frame.f_code.co_filename == self.script
        frames = []
        while frame is not None and frame.f_code.co_filename == self.script:
            frames.append(frame)
            frame = frame.f_back  # type: ignore[assignment]
        self.told.append(only_reads(frames))
        return iter([])


def told(tmp_path: Path, source: str) -> bool:
    script = tmp_path / "train.py"
    script.write_text(dedent(source), encoding="utf-8")
    data = Data(script)
    names = {"data": data, "np": type("np", (), {"concatenate": list}), "total": 0, "seen": []}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), names)
    (one,) = data.told
    return one


@pytest.mark.parametrize("source", READS)
def test_what_calls_no_model_reads(tmp_path: Path, source: str) -> None:
    assert told(tmp_path, source)


@pytest.mark.parametrize("source", EVALUATES)
def test_what_calls_something_for_a_batch_may_evaluate(tmp_path: Path, source: str) -> None:
    assert not told(tmp_path, source)


def test_without_a_source_nothing_is_told(tmp_path: Path) -> None:
    data = Data(tmp_path / "gone.py")
    exec(compile("len(list(data))", str(tmp_path / "gone.py"), "exec"), {"data": data})
    assert data.told == [False]
