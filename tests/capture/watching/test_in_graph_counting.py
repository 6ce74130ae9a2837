"""How a loop inside a tf.function gets its counter, with AutoGraph played."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow import graph_loops
from pipediag.capture.frameworks.tensorflow.graph_loops import GraphLoops
from pipediag.capture.guard import Guard
from pipediag.capture.watching import in_graph as module
from pipediag.capture.watching.in_graph import InGraphLoops
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.messages import LoopFound
from tests.capture.instruments import FakeInstruments, training_loop
from tests.capture.runtimes import ToyCancellation, ToyRuntime


class Function:
    """One that can be referred to weakly, as a tf.function can."""


class Dataset:
    """Iterated over inside a function."""

    element_spec = None
    _variant_tensor = None


class Counter:
    count = 0

    def add(self) -> None:
        self.count += 1

    def read(self) -> int:
        return self.count


class Tracing:
    """AutoGraph, the functions that it converts, and the loops that were found."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graph_loops, "CountBeside", Counter)
        monkeypatch.setattr(graph_loops, "not_kept", lambda _, **__: "A toy keeps none.")
        monkeypatch.setattr(module, "INTERVAL_S", 30)
        self.instruments = FakeInstruments(directory)
        self.updates, self.function = UpdateWatch(), Function()
        self.found: list[Any] = []
        loops: Any = SimpleNamespace(new_in_graph_loop=self.new_loop)
        guard = Guard(self.instruments.recorder.note)
        self.in_graph = InGraphLoops(
            loops, self.updates, self.instruments.all, guard, stop_after=True
        )
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
        hooks = GraphLoops(watchers, ToyRuntime())
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


def test_a_loop_over_a_dataset_is_counted_and_gives_what_it_gives(tracing: Tracing) -> None:
    tracing.updates.enter(tracing.function)

    assert tracing.for_dataset(Dataset(), None, double, None) == [0, 2, 4]
    assert [measure.counter.count for measure in tracing.measures] == [3]
    assert tracing.in_graph.runs(tracing.function)


@pytest.mark.parametrize("name", ["_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"])
def test_a_loop_over_an_iterator_is_counted(tracing: Tracing, name: str) -> None:
    tracing.updates.enter(tracing.function)
    iterator = SimpleNamespace(_dataset=Dataset())

    assert getattr(tracing.control_flow, name)(iterator, None, double, name="x") == [0, 2, 4]
    assert tracing.measures[0].counter.count == 3
    assert tracing.found == [iterator._dataset]


def test_outside_of_a_function_a_loop_stays_as_it_is(tracing: Tracing) -> None:
    assert tracing.for_dataset(Dataset(), None, double) == [0, 2, 4]
    assert tracing.measures == []


def test_what_is_no_dataset_is_not_counted(tracing: Tracing) -> None:
    tracing.updates.enter(tracing.function)
    tracing.control_flow._tf_iterator_for_stmt(object(), None, double)

    assert tracing.measures == []


def test_a_function_that_is_traced_again_keeps_its_counter(tracing: Tracing) -> None:
    tracing.updates.enter(tracing.function)
    for _ in range(2):
        tracing.for_dataset(Dataset(), None, double)

    assert [measure.counter.count for measure in tracing.measures] == [6]


def test_a_loop_that_is_traced_behind_the_look_keeps_no_batch(
    tracing: Tracing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_loops, "not_kept", lambda _, **__: None)
    made: list[Any] = []

    def keeper() -> Any:
        made.append(SimpleNamespace(keep=lambda *_: None, empty=lambda: None, read=lambda: None))
        return made[-1]

    monkeypatch.setattr(graph_loops, "BatchKeeper", keeper)
    tracing.updates.enter(tracing.function)
    tracing.for_dataset(Dataset(), None, double)
    assert tracing.measures[0].keepers == made
    tracing.in_graph.finish("the script finished")
    tracing.for_dataset(Dataset(), None, double)

    assert len(made) == 1
    assert tracing.measures[0].keepers == []


def test_the_dataset_is_the_one_that_the_function_was_given(tracing: Tracing) -> None:
    given = Dataset()
    call = tracing.in_graph.call_begins(tracing.function, given, ToyCancellation())
    tracing.updates.enter(tracing.function)
    tracing.for_dataset(Dataset(), None, double)
    tracing.in_graph.call_ended(call)

    assert tracing.found == [given]
    assert tracing.measures[0].loop.record.seams == 1


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


def test_the_script_may_be_stopped_once_a_loop_was_measured(tracing: Tracing) -> None:
    tracing.updates.enter(tracing.function)
    tracing.for_dataset(Dataset(), None, double)
    assert not tracing.in_graph.enough
    tracing.in_graph.finish("the script finished")

    assert tracing.in_graph.enough


def test_given_up_a_call_that_runs_is_watched_no_more(tracing: Tracing) -> None:
    call = tracing.in_graph.call_begins(tracing.function, None, ToyCancellation())
    tracing.in_graph.given_up()

    assert call.over.is_set()
    assert call.watcher is not None
    call.watcher.join(30)
    assert not call.watcher.is_alive()
