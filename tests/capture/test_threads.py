"""Two threads that build and train at once: each has its own steps, calls and loops."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.loops.loop import Loop
from pipediag.capture.loops.registry import LoopRegistry
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.process import EachThread, runs_tf_data
from pipediag.capture.recorder import Recorder
from pipediag.capture.watching.updates import UpdateWatch
from tests.capture.runtimes import ToyRuntime


class State:
    """Something of which each thread has its own."""


class Other:
    """A second thread that does what it is given, and waits meanwhile."""

    def __init__(self) -> None:
        self._given: Callable[[], Any] | None = None
        self._turn, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def does(self, what: Callable[[], Any]) -> Any:
        self._given = what
        self._turn.release()
        assert self._done.acquire(timeout=30)
        return self._result

    def ends(self) -> None:
        self._given = None
        self._turn.release()
        self.thread.join(30)

    def _run(self) -> None:
        while self._turn.acquire() and self._given is not None:
            self._result = self._given()
            self._done.release()


def test_each_thread_has_a_state_of_its_own_for_as_long_as_it_lives() -> None:
    states, other = EachThread(State), Other()
    mine, others = states.here, other.does(lambda: states.here)
    assert states.here is mine
    assert others is not mine
    assert set(states.all()) == {mine, others}
    del others
    other.does(lambda: None)
    other.ends()
    assert states.all() == [mine]


def test_a_native_thread_is_not_made_one_of_pythons() -> None:
    import _thread

    found: list[bool] = []
    before = threading.active_count()
    over = threading.Event()

    def run() -> None:
        found.append(runs_tf_data())
        over.set()

    _thread.start_new_thread(run, ())
    assert over.wait(30)
    assert (found, runs_tf_data()) == ([True], False)
    assert threading.active_count() <= before


def test_what_one_thread_writes_is_no_step_of_the_other() -> None:
    watch, other = UpdateWatch(), Other()
    watch.take_updated()

    def train() -> None:
        watch.take_updated()
        watch.note()

    other.does(train)
    assert watch.updated is False
    assert other.does(lambda: watch.updated) is True


def registry(path: Path) -> LoopRegistry:
    plan: Any = SimpleNamespace(operation_of=lambda dataset: None)
    return LoopRegistry(Recorder(path / "recording.json"), plan)


def loop_at_one_line(loops: LoopRegistry) -> Loop:
    dataset = SimpleNamespace(element_spec=None)
    return loops.consumer_for(State(), dataset, ToyRuntime(), distributed=False).loop


def test_two_threads_at_one_line_are_two_loops(tmp_path: Path) -> None:
    loops, other = registry(tmp_path), Other()
    mine = loop_at_one_line(loops)
    others = other.does(lambda: loop_at_one_line(loops))
    assert others is not mine
    assert {loop.record.id for loop in (mine, others)} == {"loop1", "loop2"}
    assert loop_at_one_line(loops) is mine


def test_a_thread_for_each_epoch_is_one_loop(tmp_path: Path) -> None:
    loops, first = registry(tmp_path), Other()
    epoch = first.does(lambda: loop_at_one_line(loops))
    first.ends()
    assert Other().does(lambda: loop_at_one_line(loops)) is epoch


class Dataset:
    """A tf.data dataset, as far as the plan looks."""

    element_spec = None

    def __init__(self) -> None:
        self.between: Callable[[], Any] = lambda: None

    def map(self, fails: bool = False, name: str | None = None) -> Dataset:
        self.between()
        if fails:
            raise ValueError("of the script")
        return Dataset()

    def _inputs(self) -> list[Dataset]:
        return []

    def _functions(self) -> list[Any]:
        return []


@pytest.fixture
def _tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """TensorFlow, as far as the plan asks it about a dataset."""
    graph = SimpleNamespace(executing_eagerly=lambda: False)
    flat = SimpleNamespace(
        get_flat_tensor_shapes=lambda spec: [], get_flat_tensor_types=lambda spec: []
    )
    eager, util = SimpleNamespace(context=graph), SimpleNamespace(structure=flat)
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager", eager)
    monkeypatch.setitem(sys.modules, "tensorflow.python.data.util", util)


@pytest.mark.usefixtures("_tensorflow")
def test_datasets_that_two_threads_build_at_once_do_not_mix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dataset, "map", Dataset.map)
    recorder, other = Recorder(tmp_path / "recording.json"), Other()
    PlanRecorder(recorder).install(Dataset, Guard(recorder.note))
    failing = Dataset()
    failing.between = lambda: other.does(lambda: Dataset().map())

    with pytest.raises(ValueError, match="of the script"):
        failing.map(fails=True)
    operations = recorder.recording.operations
    assert [(one.id, one.inside_function_of) for one in operations] == [("op2", None)]
    assert recorder.recording.notes == []
