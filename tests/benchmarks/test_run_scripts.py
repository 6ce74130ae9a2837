"""The scripts that stamp their own run, and their clock; no script is run here."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from benchmarks.run_ledger import SCRIPTS, STAMPS, chosen

LONGEST = 70


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.delenv(STAMPS, raising=False)
    keras = SimpleNamespace(callbacks=SimpleNamespace(Callback=object))
    monkeypatch.setitem(sys.modules, "keras", keras)
    for name in ("clock", "clock.loops", "clock.fits"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import clock

    return clock


@pytest.fixture
def now(clock: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now()
    monkeypatch.setattr(clock, "time", now)
    return now


def legs_of(run, path: Path) -> list[dict[str, float]]:
    run.write(path)
    return json.loads(path.read_text(encoding="utf-8"))["legs"]


def test_there_are_at_least_fifteen() -> None:
    assert len(chosen()) >= 15
    assert [script.stem for script in chosen(["folds"])] == ["folds"]


@pytest.mark.parametrize("script", chosen(), ids=lambda script: script.stem)
def test_each_script_is_short_and_documented_and_starts_its_clock_first(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree)
    assert "pipediag" not in text
    assert len(text.splitlines()) <= LONGEST
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    assert next(name for name in imported if name not in sys.stdlib_module_names) == "clock"


def test_the_variable_has_one_name(clock: ModuleType) -> None:
    assert clock.VARIABLE == STAMPS


def test_every_second_is_in_one_part(clock: ModuleType, now: Now, tmp_path: Path) -> None:
    run = clock.RunClock()
    now.passes(2.0)
    run.imported()
    now.passes(1.0)
    run.training_begins()
    run.at("steps")
    now.passes(5.0)
    run.move(2.0, "steps", "compile")
    run.training_over()
    now.passes(0.5)
    with run.evaluation():
        now.passes(0.25)
    run.training_begins()
    run.at("steps")
    now.passes(3.0)
    run.training_over()
    now.passes(0.75)
    assert legs_of(run, tmp_path / "stamps.json") == [
        {"startup": 2.0, "before_training": 1.0, "steps": 3.0, "compile": 2.0},
        {"between_loops": 0.5, "evaluation": 0.25, "steps": 3.0},
        {"after_training": 0.75},
    ]


def test_no_more_is_moved_than_is_there(clock: ModuleType, now: Now, tmp_path: Path) -> None:
    run = clock.RunClock()
    run.at("steps")
    now.passes(1.0)
    run.move(5.0, "steps", "compile")
    run.move(-1.0, "compile", "steps")
    assert legs_of(run, tmp_path / "stamps.json") == [
        {"startup": 0.0, "steps": 0.0, "compile": 1.0}
    ]


def test_a_loops_first_step_of_each_kind_has_built(
    clock: ModuleType, now: Now, tmp_path: Path
) -> None:
    from clock.loops import LoopClock

    run = clock.RunClock()
    run.imported()
    own = LoopClock(run)
    for wait, steps in ((0.5, (("a", 3.0), ("b", 2.0), ("a", 1.0))), (0.25, (("b", 0.5),))):
        own.epoch_begins()
        now.passes(wait)
        for kind, seconds in steps:
            own.batch_in_hand()
            now.passes(seconds)
            own.step_over(kind)
            now.passes(0.0625)
        own.epoch_over()
        now.passes(0.125)
    own.over()
    parts = legs_of(run, tmp_path / "stamps.json")[0]
    assert parts["epoch_start"] == 0.75
    assert parts["compile"] == 3.5
    # Two of the four moments after a step are followed by another one.
    assert parts["steps"] == 3.0 + 2 * 0.0625
    assert parts["epoch_end"] == 0.25 + 2 * 0.0625


def fit(own, now: Now, epochs: list[list[float]], validation: list[float]) -> None:
    own.on_train_begin()
    for epoch, steps in enumerate(epochs):
        own.on_epoch_begin(epoch)
        for batch, seconds in enumerate(steps):
            own.on_train_batch_begin(batch)
            now.passes(seconds)
        if validation:
            own.on_test_begin()
            for batch, seconds in enumerate(validation):
                own.on_test_batch_begin(batch)
                now.passes(seconds)
            own.on_test_end()
        own.on_epoch_end(epoch)
        now.passes(0.125)
    own.on_train_end()


def test_a_fits_first_steps_have_waited_and_the_very_first_one_has_built(
    clock: ModuleType, now: Now, tmp_path: Path
) -> None:
    from clock.fits import FitClock

    run = clock.RunClock()
    run.imported()
    own = FitClock(run)
    fit(own, now, [[8.0, 1.0, 1.0], [3.0, 1.0, 1.0], [3.0, 1.0, 1.0]], [])
    fit(own, now, [[2.5, 1.0, 1.0]], [])
    first, second, _ = legs_of(run, tmp_path / "stamps.json")
    assert (first["compile"], first["epoch_start"], first["steps"]) == (5.0, 6.0, 9.0)
    assert first["epoch_end"] == 0.375
    assert (second["epoch_start"], second["steps"]) == (1.5, 3.0)
    assert "compile" not in second


def test_of_a_cached_dataset_the_first_wait_is_given(
    clock: ModuleType, now: Now, tmp_path: Path
) -> None:
    from clock.fits import FitClock

    run = clock.RunClock()
    run.imported()
    fit(FitClock(run, 4.0), now, [[8.0, 1.0, 1.0], [1.5, 1.0, 1.0]], [])
    first = legs_of(run, tmp_path / "stamps.json")[0]
    assert (first["compile"], first["epoch_start"], first["steps"]) == (3.0, 4.5, 6.0)


def test_a_validation_builds_once(clock: ModuleType, now: Now, tmp_path: Path) -> None:
    from clock.fits import FitClock

    run = clock.RunClock()
    run.imported()
    fit(FitClock(run), now, [[3.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [2.0, 0.5])
    first = legs_of(run, tmp_path / "stamps.json")[0]
    assert (first["compile"], first["evaluation"], first["steps"]) == (3.5, 3.5, 6.0)
