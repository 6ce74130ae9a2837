"""The conversation about arms, with a parent, a model and pipelines that are played."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.trying import answering as module
from pipediag.capture.trying.answering import Trials
from tests.capture.instruments import consumer_of, training_loop

SECOND = 1_000_000_000


class Parent:
    """Asks what it was given, one thing after the other."""

    def __init__(self) -> None:
        self.asks: list[dict[str, Any]] = []

    def next(self) -> dict[str, Any] | None:
        return self.asks.pop(0) if self.asks else None

    def prepare(self, arm: str) -> None:
        self.asks.append({"do": "prepare", "arm": arm, "changes": [], "check": None})

    def block(self, arm: str, seconds: float = 1) -> None:
        self.asks.append({"do": "block", "arm": arm, "seconds": seconds})

    def pull(self, arm: str, seconds: float = 1) -> None:
        self.asks.append({"do": "pull", "arm": arm, "seconds": seconds})


class Clock:
    """Stands still between two steps."""

    def __init__(self) -> None:
        self.now = SECOND

    def monotonic_ns(self) -> int:
        return self.now

    def settled_ns(self, now_ns: int) -> int:
        return now_ns


class Model:
    """One that can be compiled otherwise, or says why not."""

    model = None

    def __init__(self, *_: Any) -> None:
        self.used: list[dict[str, Any]] = []

    def check(self, settings: dict[str, Any]) -> None: ...

    def use(self, settings: dict[str, Any]) -> None:
        self.used.append(settings)

    def batches_per_step(self, settings: dict[str, Any], own: int) -> int:
        return own


class Stage:
    """A held loop, and the parent that asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parent, self.clock = Parent(), Clock()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.made = 0
        self.rows = 4
        self.loop: Loop = training_loop()
        self.loop.dataset = "pipeline"
        monkeypatch.setattr(module, "DeviceClock", lambda: self.clock)
        monkeypatch.setattr(module, "CompiledVariants", Model)
        monkeypatch.setattr(module, "time", self.clock)
        monkeypatch.setattr(module, "rebuild", lambda dataset, *_, **__: dataset)
        monkeypatch.setattr(module, "_iterator", self.iterator)
        monkeypatch.setattr(module, "batch_rows", lambda batch: self.rows)

    def iterator(self, dataset: str) -> str:
        self.made += 1
        return f"{dataset} {self.made}"

    def tell(self, event: str, **details: Any) -> None:
        self.told.append((event, details))

    def pull(self, iterator: str) -> str:
        self.clock.now += SECOND // 10
        return f"batch of {iterator}"

    def trials(self, *, goes_on: bool = False) -> Trials:
        commands: Any = self.parent
        return Trials(self.loop, commands, self.tell, self.pull, goes_on=goes_on)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def step(stage: Stage, trials: Trials, consumer: Consumer, times: int = 1) -> None:
    for _ in range(times):
        stage.clock.now += SECOND // 10
        trials.boundary(consumer, stage.clock.now, continuous=True)


def test_a_new_epoch_goes_on_with_the_arm_and_the_former_one_gets_its_own_iterator(
    stage: Stage,
) -> None:
    stage.parent.prepare("base")
    first, second = consumer_of(stage.loop), consumer_of(stage.loop, ordinal=2)
    trials = stage.trials()
    trials.begin(first)
    assert first.stand_in.iterator == "pipeline 2"
    step(stage, trials, second)

    assert first.stand_in.iterator is None
    assert second.stand_in.iterator == "pipeline 2"
