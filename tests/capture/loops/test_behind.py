from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from types import FrameType
from typing import Any

import pytest

from pipediag.capture.loops import source as module
from pipediag.capture.loops.source import trains_behind

CUSTOM = """
    def step(batch):
        with tf.GradientTape() as tape:
            pass

    def train(data):
        for batch in data:
            here()
            step(batch)

    train(first)
    report(first)
    train(second)
"""

ITERATOR = """
    iterator = iter(first)
    for number in range(3):
        batch = here()
        tape = tf.GradientTape
        optimizer.apply_gradients(batch)
    evaluate(first)
"""

FITS = """
    model.compile("adam")
    for fold in range(2):
        here()
        scaler.fit(first)
        model.evaluate(first)
    if True:
        model.fit(second)
    other.fit(second, epochs=3)
    def later():
        other.fit(second, epochs=3)
"""


def behind(path: Path, monkeypatch: pytest.MonkeyPatch, text: str, **given: Any) -> list[int]:
    """Run the script until it comes `here`, and ask there."""
    file = path / "train.py"
    file.write_text(dedent(text), encoding="utf-8")
    monkeypatch.setattr(module, "is_users", lambda name: name == str(file))
    found: list[str] = []

    class ComeHereError(Exception):
        pass

    def here() -> None:
        frame: FrameType | None = sys._getframe(1)
        frames = []
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
        found.extend(trains_behind(frames, **given))
        raise ComeHereError

    anything: dict[str, Any] = {"first": [1], "second": [2], "here": here}
    anything["model"] = type("Model", (), {"compile": lambda *_: None})()
    with pytest.raises(ComeHereError):
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), anything)
    assert all(one.startswith(f"{file}:") for one in found)
    return [int(one.rpartition(":")[2]) for one in found]


def test_a_later_call_of_a_function_that_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert behind(tmp_path, monkeypatch, CUSTOM, in_fit=False) == [13]


def test_the_loops_own_step_is_not_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert behind(tmp_path, monkeypatch, ITERATOR, in_fit=False) == []


def test_later_fits_of_keras_and_of_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert behind(tmp_path, monkeypatch, FITS, in_fit=True) == [8, 9]


def test_without_source_nothing_is_known(tmp_path: Path) -> None:
    assert trains_behind([sys._getframe()], in_fit=True) == []
