"""Loops inside a tf.function: how they are found, counted, measured and cancelled."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.graph_loops import GraphLoops
from pipediag.capture.guard import Guard
from pipediag.capture.recorder import Recorder
from pipediag.capture.watching import in_graph as module
from pipediag.capture.watching.in_graph import InGraphLoops, InGraphMeasure
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound, LoopMeasured, WindowBegun
from tests.capture.instruments import CountingPace, FakeInstruments, ToyCancellation, training_loop


class FakeCancellation(ToyCancellation):
    """Tells when the call was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled = threading.Event()

    def start(self) -> None:
        super().start()
        self.cancelled.set()


class Function:
    """One that can be referred to weakly, as a tf.function can."""


class Stage:
    """An in-graph loop that has been measured, and a function that calls it."""

    def __init__(self, directory: Path) -> None:
        self.recorder = Recorder(directory / "recording.json")
        instruments: Any = SimpleNamespace(recorder=self.recorder, pace=CountingPace())
        loops: Any = SimpleNamespace()
        self.in_graph = InGraphLoops(loops, UpdateWatch(), instruments, Guard(print))
        record = SimpleNamespace(role="training")
        self.polled = threading.Event()
        measure: Any = SimpleNamespace(
            done=True,
            loop=SimpleNamespace(record=record, trains=True),
            poll=self.polled.set,
            call_begins=lambda: None,
            call_ended=lambda: None,
        )
        self.function = Function()
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
    assert Stage(tmp_path).call(until=cancellation.cancelled, cancellation=cancellation)


def test_a_loop_that_cannot_be_cancelled_goes_on_and_the_session_says_so(
    tmp_path: Path, cancellation: FakeCancellation
) -> None:
    cancellation.lack = "There is no way."
    stage = Stage(tmp_path)

    assert not stage.call(until=stage.polled, cancellation=cancellation)
    assert stage.recorder.recording.notes == ["There is no way."]


def test_the_timeline_is_told_of_a_loop_when_it_is_found_in_a_call(tmp_path: Path) -> None:
    instruments = FakeInstruments(tmp_path)
    updates, loop = UpdateWatch(), training_loop(kind="in_graph")
    loops: Any = SimpleNamespace(new_in_graph_loop=lambda *_: loop)
    in_graph = InGraphLoops(loops, updates, instruments.all, Guard(print))
    assert in_graph.found("a data set") is None
    assert instruments.timeline.told == []

    function = Function()
    updates.enter(function)
    found = in_graph.found("a data set")
    assert in_graph.found("another") is found
    assert in_graph.runs(function)

    assert instruments.timeline.told == [("called", loop.record.id)]


class Dataset:
    """Iterated over inside a function."""

    element_spec = None
    _variant_tensor = None


class Tracing:
    """AutoGraph, the functions that it converts, and the loops that were found."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "INTERVAL_S", 30)
        self.instruments = FakeInstruments(directory)
        self.updates, self.function = UpdateWatch(), Function()
        self.found: list[Any] = []
        loops: Any = SimpleNamespace(new_in_graph_loop=self.new_loop)
        guard = Guard(self.instruments.recorder.note)
        self.in_graph = InGraphLoops(loops, self.updates, self.instruments.all, guard)
        registry = SimpleNamespace(_registry={Dataset: self.over_dataset})
        autograph: Any = SimpleNamespace(
            control_flow=SimpleNamespace(for_loop_registry=registry),
            dataset_ops=SimpleNamespace(DatasetV2=Dataset),
        )
        self.control_flow: Any = SimpleNamespace(
            _tf_iterator_for_stmt=self.over_iterator,
            _tf_distributed_iterable_for_stmt=self.over_iterator,
        )
        watchers: Any = SimpleNamespace(guard=guard, in_graph=self.in_graph)
        hooks = GraphLoops(watchers)
        hooks.install_datasets(autograph)
        hooks.install_iterators(self.control_flow)
        self.for_dataset: Any = registry._registry[Dataset]

    def new_loop(self, dataset: Any, *_: Any) -> Any:
        self.found.append(dataset)
        return training_loop(len(self.found), kind="in_graph", role="other")

    def over_dataset(self, dataset: Any, test: Any, body: Any, *_: Any) -> list[Any]:
        return [body(batch) for batch in range(3)]

    def over_iterator(self, iterated: Any, test: Any, body: Any, *_: Any, name: str = "") -> Any:
        return [body(batch) for batch in range(3)]

    @property
    def measures(self) -> list[Any]:
        return self.in_graph._measures


@pytest.fixture
def tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tracing:
    return Tracing(tmp_path, monkeypatch)


def double(batch: int) -> int:
    return 2 * batch


def test_the_dataset_is_the_one_that_the_function_was_given(tracing: Tracing) -> None:
    given = Dataset()
    call = tracing.in_graph.call_begins(tracing.function, given, ToyCancellation())
    tracing.updates.enter(tracing.function)
    tracing.for_dataset(Dataset(), None, double)
    tracing.in_graph.call_ended(call)

    assert tracing.found == [given]
    assert tracing.measures[0].loop.record.boundaries == 1


def test_a_function_whose_steps_write_is_a_training(
    tracing: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "INTERVAL_S", 0.001)
    tracing.updates.enter(tracing.function)
    tracing.for_dataset(Dataset(), None, double)
    measure = tracing.measures[0]
    polled = threading.Event()
    monkeypatch.setattr(measure, "poll", polled.set)
    tracing.updates.note()
    call = tracing.in_graph.call_begins(tracing.function, None, ToyCancellation())
    assert polled.wait(30)
    tracing.in_graph.call_ended(call)

    record = measure.loop.record
    assert (record.role, record.updates_variables) == ("training", True)
    assert tracing.instruments.told[0] == LoopFound(record.line)
    assert tracing.instruments.events.count(LoopFound) == 1


def test_given_up_a_call_that_runs_is_watched_no_more(tracing: Tracing) -> None:
    call = tracing.in_graph.call_begins(tracing.function, None, ToyCancellation())
    tracing.in_graph.given_up()

    assert call.over.is_set()
    call.watcher.join(30)
    assert not call.watcher.is_alive()


MS = 1_000_000


class Call:
    """A call that is running: its clock, its counter, and who reads that."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.instruments = FakeInstruments(directory)
        self.now, self.count = 1000 * MS, 0
        self.loop = training_loop(kind="in_graph")
        clock: Any = SimpleNamespace(monotonic_ns=lambda: self.now)
        monkeypatch.setattr(module, "time", clock)
        counter = SimpleNamespace(read=lambda: self.count)
        self.measure = InGraphMeasure(self.loop, counter, self.instruments.all)

    def runs(self, steps: int, ms: int = 200) -> None:
        """It makes so many steps in that time."""
        self.now += ms * MS
        self.count += steps

    def interval(self, steps: int, ms: int = 200) -> None:
        """It makes them, and the counter is read."""
        self.runs(steps, ms)
        self.measure.poll()

    @property
    def recording(self) -> Any:
        return self.instruments.recorder.recording

    def durations(self, window: int) -> list[list[int]]:
        return [block.durations_ns for block in self.recording.windows[window].blocks]

    def until_profile(self) -> None:
        for _ in range(50):
            if self.instruments.windows[-1][0] == "profile":
                return
            self.interval(4)
        raise AssertionError("it never came to be profiled")


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    return Call(tmp_path, monkeypatch)


def test_an_interval_gives_the_average_of_its_steps(call: Call) -> None:
    call.instruments.pace.warmup = 100
    call.measure.call_begins()
    call.interval(1, ms=5000)  # in which the pipeline starts up
    call.interval(4)
    call.interval(2)

    call.measure.call_ended()
    assert call.durations(0) == [[50 * MS], [100 * MS]]
    assert (call.loop.record.steps, call.loop.record.elapsed_ns) == (7, 400 * MS)


def test_what_lies_between_two_calls_is_no_step(call: Call) -> None:
    call.instruments.pace.warmup = 100
    for _ in range(2):
        call.measure.call_begins()
        call.runs(10, ms=50)
        call.measure.call_ended()
        call.runs(0, ms=9000)

    assert call.durations(0) == [[5 * MS], [5 * MS]]
    assert call.loop.record.elapsed_ns == 100 * MS


def test_each_window_follows_the_one_before(call: Call) -> None:
    call.until_profile()
    assert call.instruments.profiler.running
    call.interval(4)
    assert not call.measure.done
    call.interval(4)

    assert call.measure.done
    assert call.instruments.windows == [("warmup", True), ("baseline", True), ("profile", True)]
    assert call.recording.windows[2].trace_directory == "trace"
    assert call.instruments.events == [WindowBegun, WindowBegun, LoopMeasured]
    assert "inside a tf.function" in call.recording.notes[0]


def test_a_script_that_ends_in_the_profile_leaves_no_profiler_running(call: Call) -> None:
    call.until_profile()
    call.measure.finish("the script finished")
    call.measure.finish("again")

    assert not call.instruments.profiler.running
    last = call.recording.windows[-1]
    assert (last.complete, last.reason) == (False, "the script finished")
