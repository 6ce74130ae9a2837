"""Hooks on a framework that pipediag has never heard of, and how they are taken off again."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks import Hook
from pipediag.capture.frameworks.hooking import Replaced, install_hooks
from pipediag.capture.guard import Guard, StopScript
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.measuring import schedule
from pipediag.capture.recorder import describe_environment
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.capture.watching.watchers import Watchers
from pipediag.session.messages import RunSettings
from pipediag.session.recording import RecordedEnvironment
from tests.capture.instruments import FakeInstruments, FakeSampler
from tests.capture.runtimes import ToyRuntime

TOY = """
class Loader:
    element_spec = None
    def __iter__(self):
        return Batches()

class Batches:
    taken = 0
    def __next__(self):
        self.taken += 1
        return [self.taken] * 4

class Weight:
    value = 0.0
    def assign(self, value):
        self.value = value
"""


class Toy:
    """All that a framework needs that makes batches and runs steps."""

    trainer = None
    looks_at_training: Mapping[str, tuple[str, ...]] = {}

    def hooks(self, watchers: Watchers) -> Iterator[tuple[str, Hook]]:
        yield "toy.core", lambda module: self._on_toy(module, watchers)

    def describe(self, environment: RecordedEnvironment) -> None:
        environment.keras_backend = "toy"

    def _on_toy(self, module: Any, watchers: Watchers) -> None:
        guard, conductor, runtime = watchers.guard, watchers.conductor, ToyRuntime()
        begins, advance = module.Loader.__iter__, module.Batches.__next__

        def iterate(loader: Any) -> Any:
            iterator = begins(loader)
            iterator.consumer = conductor.iterator_made(iterator, loader, runtime)
            return iterator

        def advance_and_tell(iterator: Any) -> Any:
            consumer, asked_ns = iterator.consumer, time.monotonic_ns()
            own = consumer.stand_in.asked(iterator)
            batch = advance(own) if own is iterator else next(own)
            return conductor.handed_over(consumer, asked_ns, time.monotonic_ns(), batch)

        module.Loader.__iter__ = guard.hook(begins, iterate)
        module.Batches.__next__ = guard.hook(advance, advance_and_tell)
        watchers.updates.install_writes(
            [module.Weight], ("assign",), lambda *_: watchers.updates.note(), guard
        )


@pytest.fixture
def instruments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeInstruments]:
    """The toy's hooks are waited for, and what loops are measured with."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "__init__.py").write_text("from toy.core import *")
    (tmp_path / "toy" / "core.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(schedule, "StackSampler", FakeSampler)
    played, updates = FakeInstruments(tmp_path), UpdateWatch()
    plan: Any = SimpleNamespace()
    held = HeldLoops(None, played.all)
    settings = RunSettings("train.py", (), False, str(tmp_path))
    loops = LoopRegistry(played.recorder, plan)
    conductor = Conductor(loops, updates, played.all, settings, lambda: None, held)
    guard, nobody = Guard(played.recorder.note), plan
    everybody = (guard, played.recorder, conductor, updates, held)
    toy: Any = Toy()
    install_hooks([toy], Watchers(*everybody, *[nobody] * 6), "toy")
    yield played
    for name in ("toy", "toy.core"):
        sys.modules.pop(name, None)


def test_a_toy_is_a_framework() -> None:
    toy = Toy()
    environment = RecordedEnvironment(python="3.11")
    describe_environment(environment, [toy.describe])

    assert environment.keras_backend == "toy"


def test_its_loop_is_found_measured_and_stopped(instruments: FakeInstruments) -> None:
    import toy  # type: ignore[import-not-found]

    weight, trained_on, batches = toy.Weight(), [], iter(toy.Loader())

    def train() -> None:
        for _ in range(100):
            batch = next(batches)
            trained_on.append(batch[0])
            weight.assign(batch[0])

    with pytest.raises(StopScript):
        train()

    (loop,) = instruments.recorder.recording.loops
    assert (loop.role, loop.batch_size, loop.element_spec) == ("training", 4, "a list")
    assert [window for window, complete in instruments.windows if complete] == [
        "warmup",
        "baseline",
        "stacks",
        "profile",
        "repeat",
    ]
    assert trained_on[0] != trained_on[1]
    assert trained_on[-1] == trained_on[-2]
    assert batches.consumer.stand_in.iterator is None
    assert instruments.recorder.recording.notes == ["A toy tells nothing while it runs."]


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


@pytest.mark.parametrize("fails", [False, True])
def test_what_a_hook_replaces_is_put_back_also_if_it_fails(fails: bool) -> None:
    def hook(target: ModuleType) -> None:
        target.trace = max
        target.Iterator.pull = target.Iterator.inherited = lambda _: "hooked"
        target.Iterator.made = staticmethod(max)
        if fails:
            raise LookupError

    target, replaced = module(), Replaced()
    before = state(target)
    with pytest.raises(LookupError) if fails else nullcontext():
        replaced.noting(hook)(target)
    assert target.Iterator().inherited() == "hooked"
    replaced.put_back()
    assert state(target) == before


def test_what_somebody_else_has_put_there_since_stays() -> None:
    target, replaced = module(), Replaced()
    replaced.noting(lambda one: setattr(one, "trace", max))(target)
    target.trace = sum  # type: ignore[attr-defined]
    replaced.put_back()
    assert target.trace is sum
