"""A script that leaves a held `fit` and goes on has its training and its callbacks again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.loops.loop import Consumer, Loop
from pipediag.capture.stop_script import StopScript
from pipediag.capture.trying import answering, held_loops
from pipediag.capture.watching.conductor import Conductor
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import TrialsAwaited, TrialsOver
from pipediag.session.settings import RunSettings
from pipediag.vocabulary import LoopRole
from tests.capture.instruments import FakeInstruments, consumer_of, training_loop
from tests.capture.trying.conversation import Parent
from tests.capture.trying.pipelines import Model, Pipeline, Pipelines, played

SECOND = 1_000_000_000


class Script:
    """Goes on after trials or is stopped; its first loop is held once it has started up."""

    def __init__(self, directory: Path, *, goes_on: bool = True) -> None:
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
        self.held = held_loops.HeldLoops(commands, self.instruments.all, run_to_end=goes_on)
        settings = RunSettings(
            "train.py", (), False, str(directory), run_to_end=goes_on, hold_loop="loop1"
        )
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
    monkeypatch.setattr(held_loops, "step_leaves_traces", lambda _: None)
    monkeypatch.setattr(held_loops, "reading_leaves_traces", lambda _: None)
    monkeypatch.setattr(answering, "within_limit", lambda work: work())
    return Script(tmp_path)


def leave_by_the_fit(script: Script) -> None:
    script.conductor.fit_over()
    assert all(loop.fit_frame is None for loop in script.loops)


def leave_by_another_epoch(script: Script) -> None:
    script.conductor.epoch_ended()


def leave_by_another_loop(script: Script) -> None:
    script.step(script.fit())


@pytest.mark.parametrize("leave", [leave_by_the_fit, leave_by_another_epoch, leave_by_another_loop])
def test_a_hold_ends_with_the_fit_that_it_is_in(script: Script, leave: Any) -> None:
    fit = script.held_fit()
    steps = fit.loop.record.steps
    leave(script)

    assert (script.held.loop, script.held.silent) == (None, False)
    assert not script.instruments.state.kept
    assert fit.stand_in.iterator is None
    [over] = [message for message in script.instruments.told if isinstance(message, TrialsOver)]
    assert over.reason == "the script left its training loop in the middle of them"
    script.step(fit)
    assert fit.loop.record.steps == steps + 1


def test_what_is_left_is_held_no_more_and_neither_is_what_comes_later(script: Script) -> None:
    fit = script.held_fit()
    script.conductor.fit_left()
    for _ in range(5):
        script.step(fit)
    script.conductor.try_pipelines_alone()

    assert script.held.loop is None
    assert script.instruments.events.count(TrialsAwaited) == 1
    assert "the script had left a loop" in (fit.loop.record.untried or "")


def test_another_thread_has_its_callbacks_and_its_training_while_a_loop_is_held(
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

    assert not other.submit(lambda: script.held.silent).result()
    assert shown == []
    assert script.held.silent


@pytest.mark.parametrize(
    ("role", "steps", "ends"),
    [("training", 0, True), ("other", 0, True), ("other", 9, False), ("validation", 0, False)],
)
def test_what_another_thread_trains_ends_the_hold_and_is_not_undone(
    script: Script, role: LoopRole, steps: int, ends: bool
) -> None:
    held, beside = script.held_fit(), script.fit()
    held.loop.runtime.captured = {7}  # type: ignore[attr-defined]
    beside.loop.record.role, beside.loop.record.steps = role, steps
    ThreadPoolExecutor(1).submit(script.step, beside).result()
    assert script.instruments.state.kept_alone == {7}, "what the held loop's steps can change"
    assert script.held.silent, "until its own step is over"
    script.step(held)

    assert (script.held.loop is None) is ends
    over = [message for message in script.instruments.told if isinstance(message, TrialsOver)]
    assert ["another thread" in message.reason for message in over] == [True] * ends
    assert script.instruments.state.kept is not ends


def test_so_does_a_function_of_another_thread_that_trains_without_a_loop(script: Script) -> None:
    held = script.held_fit()
    script.held.step_beside()
    script.step(held)
    assert script.held.loop is held.loop, "its own thread's steps are those of the trials"
    ThreadPoolExecutor(1).submit(script.held.step_beside).result()
    script.step(held)

    assert script.held.loop is None


def test_a_fit_that_is_left_in_a_script_that_is_stopped_later_is_held_no_more(
    tmp_path: Path, script: Script
) -> None:
    script = Script(tmp_path, goes_on=False)
    fit = script.held_fit()
    assert not script.held.silent
    script.conductor.fit_over()

    assert (script.held.loop, script.held.skipped) == (None, ())
    assert not script.instruments.state.kept
    assert script.model.used[-1] == {}, "the model is compiled as the script has it"
    assert fit.stand_in.iterator is None
    steps = fit.loop.record.steps
    script.step(fit)
    assert fit.loop.record.steps == steps + 1


def test_an_epoch_that_ends_in_trials_stops_the_script_that_was_to_be_stopped(
    tmp_path: Path, script: Script
) -> None:
    script = Script(tmp_path, goes_on=False)
    script.held_fit()
    with pytest.raises(StopScript):
        script.conductor.epoch_over()

    assert script.held.loop is None
    assert script.model.used[-1] == {}
    assert not script.instruments.state.kept


def test_what_a_callback_does_with_other_loops_leaves_such_a_hold(
    tmp_path: Path, script: Script
) -> None:
    script = Script(tmp_path, goes_on=False)
    fit = script.held_fit()
    script.conductor.epoch_ended()
    script.step(script.fit())
    script.conductor.fit_over()

    assert script.held.loop is fit.loop


def test_no_loop_is_held_while_another_thread_trains(script: Script) -> None:
    fit, beside = script.fit(), script.fit()
    other = ThreadPoolExecutor(1)
    beside.loop.thread = other.submit(threading.current_thread).result()
    other.submit(script.step, beside).result()
    with script.held.in_epoch():
        for _ in range(4):
            script.step(fit)

    assert script.held.loop is None
    assert "trains or is tried on another thread" in (fit.loop.record.untried or "")


def test_a_second_loop_is_not_held_beside_the_first(script: Script) -> None:
    held, second = script.held_fit(), script.fit()

    with script.held.in_epoch():
        assert not script.held.hold(second.loop, second, goes_on=True)
    assert script.held.loop is held.loop
    assert "tried on another thread" in (second.loop.record.untried or "")
