"""A held loop and the parent that asks, with a clock, a model and pipelines that are played."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.capture.loops.loop import Consumer
from pipediag.capture.trying import protocol as module
from pipediag.capture.trying.protocol import TrialsOfLoop
from pipediag.session.messages import Command, FromChild, Prepare, Prepared, RunBlock
from tests.capture.instruments import ToyRuntime, consumer_of, training_loop


class Pipeline:
    """A dataset; its iterators are numbered in the order in which they are made."""

    element_spec = None
    rows = 4
    made = 0

    def __init__(self, changes: tuple[Any, ...] = ()) -> None:
        self.changes = changes

    def iterator(self) -> str:
        Pipeline.made += 1
        return f"iterator {Pipeline.made}"


class Pipelines(ToyRuntime):
    """Runs them."""

    def rows(self, batch: Any) -> int:
        return Pipeline.rows

    def pull(self, iterator: Any) -> Any:
        return f"batch of {iterator}"

    def unobserved(self, dataset: Pipeline) -> str:
        return dataset.iterator()


class Model:
    """One that can be compiled otherwise."""

    def __init__(self) -> None:
        self.used: list[dict[str, Any]] = []

    def check(self, settings: dict[str, Any]) -> None:
        """Refuse none."""

    def use(self, settings: dict[str, Any]) -> None:
        self.used.append(settings)


def played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let variants be built of such pipelines."""
    monkeypatch.setattr(Pipeline, "made", 0)
    monkeypatch.setattr(Pipeline, "rows", 4)
    monkeypatch.setattr(module, "rebuild", lambda _, changes, **__: Pipeline(changes))


SECOND = 1_000_000_000
STEP_NS = SECOND // 10
WARM_STEPS = 3
"""At a tenth of a second each, these are the warm-up of a variant."""


class OutOfRangeError(Exception):
    """TensorFlow's."""


class Parent:
    """Asks what it was given, one thing after the other."""

    def __init__(self) -> None:
        self.asks: list[Command] = []
        self.looks: Callable[[], None] = lambda: None

    def next(self) -> Command | None:
        self.looks()
        return self.asks.pop(0) if self.asks else None

    def prepare(self, variant: str, check: Any = None) -> None:
        self.asks.append(Prepare(variant, (), check))

    def block(self, variant: str, seconds: float = 1) -> None:
        self.asks.append(RunBlock(variant, seconds))

    def pull(self, variant: str, seconds: float = 1) -> None:
        self.asks.append(RunBlock(variant, seconds, alone=True))


class Clock:
    """Stands still between two steps."""

    def __init__(self) -> None:
        self.now = SECOND

    def monotonic_ns(self) -> int:
        return self.now


class Taking(Pipelines):
    """A pull takes as long as a step."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def pull(self, iterator: Any) -> Any:
        self._clock.now += STEP_NS
        return super().pull(iterator)


class Stage:
    """A held loop, and the parent that asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        played(monkeypatch)
        self.parent, self.clock, self.model = Parent(), Clock(), Model()
        self.told: list[Any] = []
        self.over: list[bool] = []
        """How trials ended."""
        self.loop = training_loop(batches_per_call=2, batch_size=4)
        self.loop.dataset = Pipeline()
        self.consumer = consumer_of(self.loop)
        self.loop.runtime = Taking(self.clock)
        monkeypatch.setattr(module, "ModelVariants", self.compiled)
        monkeypatch.setattr(module, "time", self.clock)

    def compiled(self, _: Any, failed: Any) -> Model:
        self.step_failed = failed
        return self.model

    def tell(self, message: FromChild) -> None:
        self.told.append(message)

    @property
    def events(self) -> list[type]:
        return [type(message) for message in self.told]

    def trials(self) -> TrialsOfLoop:
        commands: Any = self.parent
        return TrialsOfLoop(self.loop, commands, self.tell, self.over.append)

    def begun(self) -> TrialsOfLoop:
        trials = self.trials()
        trials.begin(self.consumer)
        return trials

    def prepared(self) -> TrialsOfLoop:
        """With a variant that has taken its first steps; what the parent asks next has begun."""
        self.parent.asks.insert(0, Prepare("base", (), None))
        trials = self.begun()
        self.step(trials, times=2)
        assert self.events == [Prepared]
        self.told.clear()
        return trials

    def step(
        self,
        trials: TrialsOfLoop,
        consumer: Consumer | None = None,
        *,
        times: int = 1,
        continuous: bool = True,
    ) -> None:
        for _ in range(times):
            self.clock.now += STEP_NS
            trials.boundary(consumer or self.consumer, self.clock.now, continuous)

    @property
    def handed_out(self) -> Any:
        return self.consumer.substitute
