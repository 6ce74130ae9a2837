from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.recorder import Recorder
from pipediag.capture.watching import in_graph as module
from pipediag.capture.watching.in_graph import InGraphLoops
from pipediag.capture.watching.updates import UpdateWatch
from tests.capture.frameworks.tensorflow.test_cancellation import FakeCancellation
from tests.capture.instruments import FakeInstruments, training_loop


class SimpleFunction:
    """One that can be referred to weakly, as a tf.function can."""


class Stage:
    """An in-graph loop that has been measured, and a function that calls it."""

    def __init__(self, directory: Path, stop_after: bool) -> None:
        self.recorder = Recorder(directory / "recording.json")
        instruments: Any = SimpleNamespace(recorder=self.recorder)
        loops: Any = SimpleNamespace()
        self.in_graph = InGraphLoops(loops, UpdateWatch(), instruments, Guard(print), stop_after)
        record = SimpleNamespace(role="training")
        self.polled = threading.Event()
        measure: Any = SimpleNamespace(
            done=True,
            loop=SimpleNamespace(record=record, trains=True),
            poll=self.polled.set,
            call_begins=lambda: None,
            call_ended=lambda: None,
        )
        self.function = SimpleFunction()
        self.in_graph._measure_of[self.function] = measure

    def call(self, until: threading.Event, cancellation: FakeCancellation) -> bool:
        """Call it until that happens; returns whether the call was cancelled."""
        call = self.in_graph.call_begins(self.function, None, cancellation)
        assert until.wait(30)
        self.in_graph.call_ended(call)
        return call.cancellation.started


@pytest.fixture
def cancellation(monkeypatch: pytest.MonkeyPatch) -> FakeCancellation:
    monkeypatch.setattr(module, "INTERVAL_S", 0.001)
    return FakeCancellation()


def test_a_measured_loop_is_cancelled(tmp_path: Path, cancellation: FakeCancellation) -> None:
    assert Stage(tmp_path, stop_after=True).call(
        until=cancellation.cancelled, cancellation=cancellation
    )


def test_a_loop_that_cannot_be_cancelled_goes_on_and_the_session_says_so(
    tmp_path: Path, cancellation: FakeCancellation
) -> None:
    cancellation.lack = "There is no way."
    stage = Stage(tmp_path, stop_after=True)

    assert not stage.call(until=stage.polled, cancellation=cancellation)
    assert stage.recorder.recording.notes == ["There is no way."]


def test_a_script_that_runs_to_its_end_is_not_cancelled(
    tmp_path: Path, cancellation: FakeCancellation
) -> None:
    stage = Stage(tmp_path, stop_after=False)

    assert not stage.call(until=stage.polled, cancellation=cancellation)


def test_the_timeline_is_told_of_a_loop_when_it_is_found_in_a_call(tmp_path: Path) -> None:
    instruments = FakeInstruments(tmp_path)
    updates, loop = UpdateWatch(), training_loop(kind="in_graph")
    loops: Any = SimpleNamespace(new_in_graph_loop=lambda *_: loop)
    in_graph = InGraphLoops(loops, updates, instruments.all, Guard(print), stop_after=False)
    counter: Any = SimpleNamespace(read=lambda: 0)
    runtime: Any = None
    assert in_graph.found("a data set", runtime, lambda: counter) is None
    assert instruments.timeline.told == []

    function = SimpleFunction()
    updates.enter(function)
    found = in_graph.found("a data set", runtime, lambda: counter)
    assert in_graph.found("another", runtime, lambda: counter) is found
    assert in_graph.runs(function)

    assert instruments.timeline.told == [("called", loop.record.id)]


def test_few_loops_keep_batches_and_none_of_a_function_that_is_gone(tmp_path: Path) -> None:
    instruments, updates = FakeInstruments(tmp_path), UpdateWatch()
    loops: Any = SimpleNamespace(new_in_graph_loop=lambda *_: training_loop(kind="in_graph"))
    in_graph = InGraphLoops(loops, updates, instruments.all, Guard(print), stop_after=False)
    counter: Any = SimpleNamespace(read=lambda: 0)
    runtime: Any = None
    held: set[int] = set()

    def trace(function: SimpleFunction, number: int) -> None:
        updates.enter(function)
        measure = in_graph.found("data", runtime, lambda: counter)
        assert measure is not None
        held.add(number)
        keeper: Any = SimpleNamespace(empty=lambda: held.discard(number), read=lambda: None)
        in_graph.keeps(measure, keeper)
        updates.leave()

    functions = [SimpleFunction() for _ in range(10)]
    for number, function in enumerate(functions):
        trace(function, number)
    assert held == set(range(2, 10))
    del functions[:], function
    last = SimpleFunction()
    trace(last, 10)

    assert held == {10}
