"""Hooks on modules as they arrive, and on Keras in each shape that it has had.

The shapes are those of Keras 2.12, 2.15, 3.0.5, 3.3.3, 3.5, 3.6 and 3.15, with which the hooks were
also run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.keras import framework
from pipediag.capture.frameworks.keras.framework import Keras
from pipediag.capture.guard import Guard
from pipediag.capture.measuring.kept_state import KeptState
from pipediag.capture.recorder import Recorder
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.updates import UpdateWatch
from tests.capture.instruments import CountingPace, FakeTimeline


class Base:
    def inherited(self) -> str:
        return "base"


def module() -> ModuleType:
    made, own = ModuleType("of_the_test"), {"pull": lambda _: "own", "made": staticmethod(len)}
    made.Iterator = type("Iterator", (Base,), own)  # type: ignore[attr-defined]
    made.trace = len  # type: ignore[attr-defined]
    return made


def state(target: ModuleType) -> dict[str, object]:
    return {**vars(target), **{f"Iterator.{k}": v for k, v in vars(target.Iterator).items()}}


def test_what_hooks_replace_is_put_back_unless_somebody_else_has_put_something_there() -> None:
    target, guard = module(), Guard(print)
    before = state(target)
    for name in ("pull", "inherited"):
        guard.replace(target.Iterator, name, lambda _: "hooked")
    guard.replace(target.Iterator, "made", staticmethod(max))
    guard.replace(target, "trace", max)
    guard.replace(target, "trace", min)
    assert target.Iterator().inherited() == "hooked"
    guard.put_back()
    assert state(target) == before

    guard.replace(target, "trace", max)
    target.trace = sum  # type: ignore[attr-defined]
    guard.put_back()
    assert target.trace is sum


class FakeClock:
    def __init__(self) -> None:
        self.holds = 0
        self.epochs_ended = self.epochs_over = 0
        self.ended_ns: list[int | None] = []

    @property
    def holds_epoch(self) -> bool:
        self.holds -= 1
        return self.holds >= 0

    def fit_over(self) -> None: ...

    def epoch_over(self) -> None:
        self.epochs_over += 1
        self.epoch_ended()

    def epoch_ended(self, at_ns: int | None = None) -> None:
        self.epochs_ended += 1
        self.ended_ns.append(at_ns)


class Stage:
    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.updates = UpdateWatch()
        recorder = Recorder(directory / "recording.json")
        guard = Guard(recorder.note)
        instruments: Any = SimpleNamespace(
            recorder=recorder,
            tell=lambda *_, **__: None,
            state=KeptState(guard, recorder.note),
            pace=CountingPace(),
        )
        self.held = Trials(None, instruments)
        watchers: Any = SimpleNamespace(
            guard=guard,
            steps=self.clock,
            updates=self.updates,
            held=self.held,
            state=instruments.state,
            recorder=recorder,
            timeline=FakeTimeline(),
        )
        self._hooks = dict(Keras(watchers).by_module())

    def arrives(self, name: str, **members: type) -> ModuleType:
        module = ModuleType(name)
        for member in members.values():
            if member.__module__ == __name__:
                member.__module__ = name
        vars(module).update(members)
        self._hooks[name](module)
        return module


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def walker(name: str, method: str, *bases: type) -> type:
    def steps(epoch: Any) -> Iterator[int]:
        yield from range(3)

    return type(name, bases, {method: steps, "__module__": __name__})


def callback_list() -> type:
    def heard(callbacks: Any, epoch: int, logs: Any = None) -> int:
        return epoch

    ends = ("train_begin", "epoch_begin", "epoch_end", "train_end")
    names = [f"on_{hook}" for hook in (*ends, "train_batch_begin", "train_batch_end")]
    members = {**dict.fromkeys(names, heard), "callbacks": [], "__module__": __name__}
    return type("CallbackList", (), members)


def walked(stage: Stage, steps: Iterator[int]) -> list[int]:
    """The steps that an epoch makes where trials begin at its second one."""
    seen = []
    for step in steps:
        seen.append(step)
        if len(seen) == 2:
            stage.clock.holds = 4
    return seen


HELD = [0, 1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("method", ["_enumerate_iterator", "enumerate_epoch"])
def test_an_epoch_is_held_in_what_walks_over_it(stage: Stage, method: str) -> None:
    """From Keras 3.7 on all backends share it, before that each has its own."""
    shared = walker("EpochIterator", method)
    stage.arrives("keras.src.trainers.epoch_iterator", EpochIterator=shared)
    own = type("TFEpochIterator", (shared,), {"__module__": __name__})
    if method == "enumerate_epoch":
        own = walker("TFEpochIterator", method, shared)
    trainer = type("TensorFlowTrainer", (), {"__module__": __name__})
    stage.arrives(
        "keras.src.backend.tensorflow.trainer", TFEpochIterator=own, TensorFlowTrainer=trainer
    )

    assert walked(stage, getattr(own(), method)()) == HELD
    if method == "enumerate_epoch":
        assert walked(stage, shared().enumerate_epoch()) == [0, 1, 2]


def steps_of_keras_2(stage: Stage, package: str = "keras.src") -> Any:
    handler = walker("DataHandler", "steps")
    stage.arrives(f"{package}.engine.data_adapter", DataHandler=handler)
    return handler().steps()  # type: ignore[attr-defined]


@pytest.mark.parametrize("package", ["tf_keras.src", "keras.src"])
def test_keras_2_is_held_under_each_name_that_it_has_had(stage: Stage, package: str) -> None:
    assert walked(stage, steps_of_keras_2(stage, package)) == HELD


def test_steps_end_with_the_last_one_and_not_when_its_iterator_was_let_go(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(100, 200))
    monkeypatch.setattr(framework, "time", SimpleNamespace(monotonic_ns=lambda: next(now)))
    assert list(steps_of_keras_2(stage)) == [0, 1, 2]
    assert stage.clock.ended_ns == [102]


def test_what_a_pydataset_does_at_an_epochs_end_is_no_step(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter(range(100, 200))
    monkeypatch.setattr(framework, "time", SimpleNamespace(monotonic_ns=lambda: next(now)))
    told_by_then: list[list[int]] = []

    class PyDatasetAdapter:
        def on_epoch_end(self) -> str:
            told_by_then.append(list(stage.clock.ended_ns))
            return "drawn anew"

    def steps(epoch: Any) -> Iterator[int]:
        yield from range(3)
        assert PyDatasetAdapter().on_epoch_end() == "drawn anew"

    name = "keras.src.trainers.data_adapters.py_dataset_adapter"
    stage.arrives(name, PyDatasetAdapter=PyDatasetAdapter)
    shared = type("EpochIterator", (), {"_enumerate_iterator": steps, "__module__": __name__})
    stage.arrives("keras.src.trainers.epoch_iterator", EpochIterator=shared)

    assert list(shared()._enumerate_iterator()) == [0, 1, 2]
    # Before it draws, and as of its last step.
    assert told_by_then == [[102]]


def test_an_epoch_is_known_to_be_repeatable_for_as_long_as_it_runs(stage: Stage) -> None:
    running = steps_of_keras_2(stage)
    assert not stage.held.repeats_steps
    next(running)
    assert stage.held.repeats_steps
    running.close()
    assert not stage.held.repeats_steps


@pytest.mark.parametrize(
    "name", ["keras.src.callbacks.callback_list", "tf_keras.src.callbacks", "keras.src.callbacks"]
)
def test_ends_of_epochs_are_heard_where_callbacks_are_defined(stage: Stage, name: str) -> None:
    module = stage.arrives(name, CallbackList=callback_list())
    if name.endswith("callback_list"):
        # A package that passes them on is not hooked again.
        stage.arrives("keras.src.callbacks", CallbackList=module.CallbackList)
    callbacks = module.CallbackList()

    assert callbacks.on_epoch_begin(5, logs={}) == 5
    assert callbacks.on_epoch_end(6) == 6
    assert (stage.clock.epochs_ended, stage.clock.epochs_over) == (2, 1)


@pytest.mark.parametrize("package", ["tf_keras.src", "keras.src"])
def test_a_step_of_a_legacy_optimizer_is_an_update(stage: Stage, package: str) -> None:
    optimizer = type(
        "OptimizerV2", (), {"apply_gradients": lambda self: None, "__module__": __name__}
    )
    module = stage.arrives(f"{package}.optimizers.legacy.optimizer_v2", OptimizerV2=optimizer)

    module.OptimizerV2().apply_gradients()

    assert stage.updates.here.updated
