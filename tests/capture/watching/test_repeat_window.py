"""A loop in its repeat window gets its own iterator again, however the window ends."""

from __future__ import annotations

import weakref
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.measuring import diagnosis
from pipediag.capture.trying.held_loops import HeldLoops
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.settings import RunSettings
from tests.capture.instruments import FakeInstruments, FakeSampler, consumer_of, training_loop
from tests.capture.runtimes import ToyRuntime

SECOND = 1_000_000_000


class OutOfRangeError(Exception):
    """TensorFlow's."""


class NamedBatches(ToyRuntime):
    """Batches are named by where they come from."""

    at_its_end = False

    def rows(self, batch: Any) -> int:
        return 8

    def pull(self, iterator: Any) -> str:
        if self.at_its_end:
            raise OutOfRangeError
        return f"batch of {iterator}"

    def repeated(self, batch: Any, element_spec: Any) -> Any:
        return f"repeated {batch}"


class Script:
    """Loops whose batches are handed over by hand, with a real diagnosis on a made-up clock."""

    def __init__(self, directory: Path) -> None:
        self.instruments = FakeInstruments(directory)
        self.runtime = NamedBatches()
        self.runtime.no_models = None
        self.now = SECOND
        self.loops: list[Loop] = []
        registry: Any = SimpleNamespace(
            all=lambda: self.loops, describe_keras=lambda loop: None, keep_evaluated=lambda: None
        )
        self.held = HeldLoops(None, self.instruments.all)
        settings = RunSettings("train.py", (), False, str(directory))
        self.conductor = Conductor(
            registry, UpdateWatch(), self.instruments.all, settings, lambda: None, self.held
        )

    def loop(self) -> Loop:
        self.loops.append(training_loop(len(self.loops) + 1))
        self.loops[-1].runtime = self.runtime
        return self.loops[-1]

    def step(self, consumer: Consumer) -> None:
        self.now += 10
        self.conductor.handed_over(consumer, self.now - 1, self.now, batch="batch")

    def call(self, consumer: Consumer) -> str:
        """A step that is given the iterator; returns which one it is."""
        self.now += 10
        given: str = self.conductor.call_begins(consumer, "own")
        return given

    def into_repeat(self, consumer: Consumer) -> None:
        while not (consumer.loop.diagnosis and consumer.loop.diagnosis.repeats):
            self.step(consumer)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.setattr(diagnosis, "StackSampler", FakeSampler)
    return Script(tmp_path)


def test_batches_are_looked_at_on_their_way_to_a_step_and_to_nothing_else(script: Script) -> None:
    def step() -> None: ...

    consumer = consumer_of(script.loop())
    consumer.loop.step_functions.append(weakref.ref(step))
    consumer.stand_in.look()

    assert script.conductor.call_begins(consumer, "own", function=print) == "own"
    looked_at = script.conductor.call_begins(consumer, "own", function=step)
    assert list(looked_at) == ["batch of own"]


def test_a_loop_that_is_given_up_gets_its_own_iterator_and_its_training_back(
    script: Script,
) -> None:
    first, second = consumer_of(script.loop()), consumer_of(script.loop())
    script.into_repeat(first)
    assert script.instruments.state.kept
    script.now += 4 * SECOND
    script.step(second)

    assert second.loop.diagnosis.measuring
    assert first.stand_in.iterator is None
    assert not script.instruments.state.kept


def test_a_loop_whose_measuring_fails_gets_its_own_iterator(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = consumer_of(script.loop())
    script.into_repeat(consumer)

    def fail(*_: Any) -> bool:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(script.instruments.pace, "repeat_done", fail)
    with pytest.raises(StopScript):
        script.step(consumer)

    assert consumer.stand_in.iterator is None
    assert script.instruments.windows[-1] == ("repeat", False)


def test_a_batch_that_can_not_be_repeated_ends_the_window_before_any_step_of_it(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(script.runtime, "repeated", fail)
    consumer = consumer_of(script.loop())
    script.into_repeat(consumer)
    with pytest.raises(StopScript):
        script.step(consumer)

    assert consumer.stand_in.iterator is None
    assert script.instruments.windows[-1] == ("repeat", False)
    assert script.instruments.recorder.recording.windows[-1].blocks == []
    assert script.instruments.recorder.recording.notes == [
        "The consumer could not be measured on a repeated batch: ZeroDivisionError: of ours"
    ]


def test_a_step_given_the_iterator_is_given_one_that_repeats_its_batch(script: Script) -> None:
    consumer = consumer_of(script.loop())
    iterators = [script.call(consumer) for _ in range(9)]

    assert consumer.loop.diagnosis.repeats
    assert iterators[0] == "own"
    assert iterators[-1] == "repeated batch of own"


def test_an_epoch_that_ends_where_its_batch_was_to_be_kept_ends_as_it_would(
    script: Script,
) -> None:
    consumer = consumer_of(script.loop())

    script.runtime.at_its_end = True
    given = [script.call(consumer) for _ in range(7)]
    assert given == ["own"] * 7
    script.conductor.exhausted(consumer)
    script.runtime.at_its_end = False
    next_epoch = consumer_of(consumer.loop, ordinal=2)

    assert script.call(next_epoch) == "repeated batch of own"
