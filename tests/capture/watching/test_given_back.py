"""A script gets its own iterator, model and training back, from a repeat window and from trials."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Consumer, Loop, Stage
from pipediag.capture.measuring import schedule
from pipediag.capture.trying import protocol
from pipediag.capture.trying.trials import Trials
from pipediag.capture.watching.step_clock import StepClock
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import RunSettings, TrialsAwaited, TrialsOver
from tests.capture.instruments import (
    FakeInstruments,
    FakeSampler,
    ToyRuntime,
    consumer_of,
    training_loop,
)
from tests.capture.trying.conversation import Model, Parent, Pipeline, Pipelines, played

SECOND = 1_000_000_000


class Script:
    def __init__(self, directory: Path, commands: Any = None, **settings: Any) -> None:
        self.instruments = FakeInstruments(directory)
        self.loops: list[Loop] = []
        self.now = SECOND
        registry: Any = SimpleNamespace(
            all=lambda: self.loops,
            describe_keras=lambda loop: None,
            keep_evaluated=lambda: None,
            let_go_of_fits=lambda: [setattr(loop, "fit_frame", None) for loop in self.loops],
        )
        asked = RunSettings("train.py", (), False, str(directory), **settings)
        self.instruments.pace.settings = asked
        self.held = Trials(commands, self.instruments.all)
        self.clock = StepClock(
            registry, UpdateWatch(), self.instruments.all, lambda: None, self.held
        )

    def loop(self) -> Loop:
        self.loops.append(training_loop(len(self.loops) + 1))
        return self.loops[-1]


class OutOfRangeError(Exception):
    """TensorFlow's."""


class NamedBatches(ToyRuntime):
    at_its_end = False

    def rows(self, batch: Any) -> int:
        return 8

    def pull(self, iterator: Any) -> str:
        if self.at_its_end:
            raise OutOfRangeError
        return f"batch of {iterator}"

    def handing_out(self, batch: Any, element_spec: Any, times: int | None = None) -> Any:
        once = super().handing_out(batch, element_spec, times)
        return f"repeated {batch}" if times is None else once


class Repeated(Script):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.runtime = NamedBatches()
        self.runtime.no_models = None

    def loop(self) -> Loop:
        loop = super().loop()
        loop.runtime = self.runtime
        return loop

    def step(self, consumer: Consumer) -> None:
        self.now += 10
        self.clock.handed_over(consumer, self.now - 1, self.now, batch="batch")

    def call(self, consumer: Consumer) -> str:
        self.now += 10
        given: str = self.clock.call_begins(consumer, "own")
        return given

    def into_repeat(self, consumer: Consumer) -> None:
        while not (consumer.loop.diagnosis and consumer.loop.diagnosis.repeats):
            self.step(consumer)


@pytest.fixture
def repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repeated:
    monkeypatch.setattr(schedule, "StackSampler", FakeSampler)
    return Repeated(tmp_path)


def test_batches_are_looked_at_on_their_way_to_a_step_alone(repeated: Repeated) -> None:
    def step() -> None: ...

    consumer = consumer_of(repeated.loop())
    consumer.loop.step_functions.append(weakref.ref(step))
    consumer.hand_out(Stage.READING)

    assert repeated.clock.call_begins(consumer, "own", function=print) == "own"
    looked_at = repeated.clock.call_begins(consumer, "own", function=step)
    assert list(looked_at) == ["batch of own"]


def test_a_loop_that_is_given_up_gets_its_own_iterator_and_its_training_back(
    repeated: Repeated,
) -> None:
    first, second = consumer_of(repeated.loop()), consumer_of(repeated.loop())
    repeated.into_repeat(first)
    assert repeated.instruments.state.kept
    repeated.now += 4 * SECOND
    repeated.step(second)

    assert second.loop.diagnosis.measuring
    assert first.substitute is None
    assert not repeated.instruments.state.kept


def fail(*_: Any) -> Any:
    raise ZeroDivisionError("of ours")


@pytest.mark.parametrize("what", ["measuring", "repeating a batch"])
def test_a_loop_in_which_ours_fails_gets_its_own_iterator(
    repeated: Repeated, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    consumer = consumer_of(repeated.loop())
    if what != "measuring":
        monkeypatch.setattr(repeated.runtime, "handing_out", fail)
    repeated.into_repeat(consumer)
    if what == "measuring":
        monkeypatch.setattr(repeated.instruments.pace, "enough", fail)
    with pytest.raises(StopScript):
        repeated.step(consumer)

    assert consumer.substitute is None
    assert repeated.instruments.windows[-1] == ("repeat", False)
    recording = repeated.instruments.recorder.recording
    assert recording.windows[-1].blocks == []
    assert recording.notes[-1].endswith("ZeroDivisionError: of ours")


def test_a_step_given_the_iterator_is_given_one_that_repeats_its_batch(repeated: Repeated) -> None:
    consumer = consumer_of(repeated.loop())
    iterators = [repeated.call(consumer) for _ in range(9)]

    assert consumer.loop.diagnosis.repeats
    assert iterators[0] == "own"
    assert iterators[-1] == "repeated batch of own"


def test_an_epoch_that_ends_where_its_batch_was_to_be_kept_ends_as_it_would(
    repeated: Repeated,
) -> None:
    consumer = consumer_of(repeated.loop())

    repeated.runtime.at_its_end = True
    given = [repeated.call(consumer) for _ in range(7)]
    assert given == ["own"] * 7
    repeated.clock.exhausted(consumer)
    repeated.runtime.at_its_end = False
    next_epoch = consumer_of(consumer.loop, ordinal=2)

    assert repeated.call(next_epoch) == "repeated batch of own"


class Held(Script):
    def __init__(self, directory: Path) -> None:
        parent = Parent()
        parent.prepare("base")
        parent.block("base", 100)
        super().__init__(directory, parent, hold_loop="loop1")

    def fit(self) -> Consumer:
        loop = self.loop()
        loop.runtime, loop.dataset = Pipelines(), Pipeline()
        loop.fit_frame = object()
        loop.record.kind = "keras"
        self.model = Model()
        return consumer_of(loop)

    def step(self, consumer: Consumer) -> None:
        self.now += SECOND // 10
        consumer.dataset = consumer.loop.dataset
        self.clock.handed_over(consumer, self.now - 1, self.now, batch="own")

    def held_fit(self) -> Consumer:
        consumer = self.fit()
        with self.held.in_epoch():
            for _ in range(4):
                self.step(consumer)
        assert self.held.loop is consumer.loop
        assert self.instruments.state.kept
        assert consumer.substitute is not None
        return consumer


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Held:
    played(monkeypatch)
    held = Held(tmp_path)
    monkeypatch.setattr(protocol, "ModelVariants", lambda *_: held.model)
    return held


def test_what_another_thread_does_leaves_the_training_of_a_held_loop_alone(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []
    monkeypatch.setattr(held.instruments.state, "show", lambda: shown.append(1))
    fit = held.held_fit()
    fit.loop.thread = threading.current_thread()
    other = ThreadPoolExecutor(1)
    shown.clear()
    other.submit(held.step, held.fit()).result()
    for left in (held.clock.epoch_ended, held.clock.fit_over):
        other.submit(left).result()

    assert shown == []
    assert held.held.loop is fit.loop


def test_a_fit_that_is_over_is_held_no_more(held: Held) -> None:
    fit = held.held_fit()
    held.clock.fit_over()
    assert all(loop.fit_frame is None for loop in held.loops)

    assert held.held.loop is None
    assert not held.instruments.state.kept
    assert held.model.used[-1] == {}, "the model is compiled as the script has it"
    assert fit.substitute is None
    [over] = [message for message in held.instruments.told if isinstance(message, TrialsOver)]
    assert over.reason == "the script left its training loop in the middle of them"
    steps = fit.loop.record.steps
    held.step(fit)
    assert fit.loop.record.steps == steps + 1
    with pytest.raises(StopScript):
        held.step(fit)
    held.clock.try_pipelines_alone()
    assert held.instruments.events.count(TrialsAwaited) == 1
    assert "were cut off" in (fit.loop.record.untried or "")


def test_an_epoch_that_ends_in_trials_stops_the_script_that_was_to_be_stopped(held: Held) -> None:
    held.held_fit()
    with pytest.raises(StopScript):
        held.clock.epoch_over()

    assert held.held.loop is None
    assert held.model.used[-1] == {}
    assert not held.instruments.state.kept


def test_a_second_loop_is_not_held_beside_the_first(held: Held) -> None:
    fit, second = held.held_fit(), held.fit()

    with held.held.in_epoch():
        assert not held.held.hold(second.loop, second, more_to_come=False)
    assert held.held.loop is fit.loop
    assert "in a loop of another thread" in (second.loop.record.untried or "")
