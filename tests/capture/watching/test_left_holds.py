"""A script that leaves a held `fit` has its training and its model again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import StopScript
from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.trying import held_loops
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import TrialsAwaited, TrialsOver
from pipediag.session.settings import RunSettings
from tests.capture.instruments import FakeInstruments, consumer_of, training_loop
from tests.capture.trying.conversation import Parent
from tests.capture.trying.pipelines import Model, Pipeline, Pipelines, played

SECOND = 1_000_000_000


class Script:
    """Its first loop is held once it has started up; it is stopped after the trials."""

    def __init__(self, directory: Path) -> None:
        self.instruments = FakeInstruments(directory)
        self.parent = Parent()
        self.parent.prepare("base")
        self.parent.block("base", 100)
        self.loops: list[Loop] = []
        self.now = SECOND
        registry: Any = SimpleNamespace(
            all=lambda: self.loops,
            describe_keras=lambda loop: None,
            keep_evaluated=lambda: None,
            let_go_of_fits=lambda: [setattr(loop, "fit_frame", None) for loop in self.loops],
        )
        commands: Any = self.parent
        self.held = held_loops.HeldLoops(commands, self.instruments.all)
        settings = RunSettings("train.py", (), False, str(directory), hold_loop="loop1")
        self.conductor = Conductor(
            registry, UpdateWatch(), self.instruments.all, settings, lambda: None, self.held
        )

    def fit(self) -> Consumer:
        loop = training_loop(len(self.loops) + 1)
        loop.runtime, loop.dataset = Pipelines(), Pipeline()
        loop.fit_frame = object()
        loop.record.kind = "keras"
        self.model = Model()
        model: Any = SimpleNamespace(variants=lambda *_: self.model)
        loop.trainer = model
        self.loops.append(loop)
        return consumer_of(loop)

    def step(self, consumer: Consumer) -> None:
        self.now += SECOND // 10
        consumer.dataset = consumer.loop.dataset
        self.conductor.handed_over(consumer, self.now - 1, self.now, batch="own")

    def held_fit(self) -> Consumer:
        consumer = self.fit()
        with self.held.in_epoch():
            for _ in range(4):
                self.step(consumer)
        assert self.held.loop is consumer.loop
        assert self.instruments.state.kept
        assert consumer.stand_in.iterator is not None
        return consumer


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    played(monkeypatch)
    return Script(tmp_path)


def test_what_is_left_is_held_no_more_and_neither_is_what_comes_later(script: Script) -> None:
    fit = script.held_fit()
    script.conductor.fit_over()
    script.step(fit)
    with pytest.raises(StopScript):
        script.step(fit)
    script.conductor.try_pipelines_alone()

    assert script.held.loop is None
    assert script.instruments.events.count(TrialsAwaited) == 1
    assert "the script had left a loop" in (fit.loop.record.untried or "")


def test_what_another_thread_does_leaves_the_training_of_a_held_loop_alone(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[int] = []
    monkeypatch.setattr(script.instruments.state, "show", lambda: shown.append(1))
    held = script.held_fit()
    held.loop.thread = threading.current_thread()
    other = ThreadPoolExecutor(1)
    shown.clear()
    other.submit(script.step, script.fit()).result()
    for left in (script.conductor.epoch_ended, script.conductor.fit_over):
        other.submit(left).result()

    assert shown == []
    assert script.held.loop is held.loop


def test_a_fit_that_is_over_is_held_no_more(script: Script) -> None:
    fit = script.held_fit()
    script.conductor.fit_over()
    assert all(loop.fit_frame is None for loop in script.loops)

    assert (script.held.loop, script.held.skipped) == (None, ())
    assert not script.instruments.state.kept
    assert script.model.used[-1] == {}, "the model is compiled as the script has it"
    assert fit.stand_in.iterator is None
    [over] = [message for message in script.instruments.told if isinstance(message, TrialsOver)]
    assert over.reason == "the script left its training loop in the middle of them"
    steps = fit.loop.record.steps
    script.step(fit)
    assert fit.loop.record.steps == steps + 1


def test_an_epoch_that_ends_in_trials_stops_the_script_that_was_to_be_stopped(
    script: Script,
) -> None:
    script.held_fit()
    with pytest.raises(StopScript):
        script.conductor.epoch_over()

    assert script.held.loop is None
    assert script.model.used[-1] == {}
    assert not script.instruments.state.kept


def test_what_a_callback_does_with_other_loops_leaves_such_a_hold(script: Script) -> None:
    fit = script.held_fit()
    script.conductor.epoch_ended()
    script.step(script.fit())
    script.conductor.fit_over()

    assert script.held.loop is fit.loop


def test_a_second_loop_is_not_held_beside_the_first(script: Script) -> None:
    held, second = script.held_fit(), script.fit()

    with script.held.in_epoch():
        assert not script.held.hold(second.loop, second, more_to_come=False)
    assert script.held.loop is held.loop
    assert "in a loop of another thread" in (second.loop.record.untried or "")
