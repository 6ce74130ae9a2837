"""TensorFlow's runtime, and calls of its functions."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.framework import TensorFlow
from pipediag.capture.frameworks.tensorflow.runtime import (
    TensorFlowRuntime,
    remove_cut_caches,
)
from pipediag.capture.frameworks.tensorflow.steps import FunctionCalls, _lengths_differ
from pipediag.capture.guard import Guard, StopScript, attempt
from pipediag.capture.loops import loop
from pipediag.capture.loops.loop import Consumer, ScriptsOwnError
from pipediag.capture.watching.step_parts import Streak
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.recording import RecordedOperation
from tests.capture.instruments import FakeTimeline, ToyRuntime


class OutOfRangeError(Exception):
    """TensorFlow's."""


class ToyIterator:
    """What can be referred to weakly."""


def train(batch: Any) -> Any:
    return batch


class Stage:
    def __init__(self, does: Callable[..., Any], traced: Callable[[], int] = lambda: 1) -> None:
        self.told: list[Any] = []
        self.notes: list[str] = []
        self.guard = Guard(self.notes.append)
        self.updates, self.timeline = UpdateWatch(), FakeTimeline()
        self.iterator: Any = ToyIterator()
        toy_loop: Any = None
        self.consumer = Consumer(toy_loop, 1, weakref.ref(self.iterator), hand_over="call")
        self.variant_to_blame = False
        self.streak = Streak(lambda *_: self.told.append("noted"))
        self.clock: Any = SimpleNamespace(
            choice=SimpleNamespace(reads_batches=False, stop=self._stop),
            streak=self.streak,
            call_begins=self.call_begins,
            exhausted=self._exhausted,
            function_called=lambda *call: self.told.append(call),
            function_traced=lambda _, again, **__: self.told.append(f"traced, again {again}"),
        )
        watchers: Any = SimpleNamespace(
            guard=self.guard,
            steps=self.clock,
            timeline=self.timeline,
            updates=self.updates,
            held=SimpleNamespace(loop=None, failed=self._failed),
            runtime=ToyRuntime(),
            recorder=SimpleNamespace(attempt=partial(attempt, self.notes.append)),
        )

        class Function:
            python_function = staticmethod(train)

            def __call__(self, *args: Any, **kwargs: Any) -> Any:
                return does(*args, **kwargs)

            def experimental_get_tracing_count(self) -> int:
                return traced()

        calls = FunctionCalls(watchers, self._consumer_among)
        calls.install(SimpleNamespace(Function=Function), self.guard)
        self.function: Any = Function()

    def call_begins(self, consumer: Any, iterator: Any, function: Any) -> Any:
        return self.consumer.asked(iterator)

    def _consumer_among(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        known = bool(args) and args[0] is self.iterator
        return (self.consumer, args[0]) if known else (None, None)

    def _stop(self) -> None:
        raise StopScript

    def _exhausted(self, _: Any) -> None:
        self.streak.settle()
        self.told.append("exhausted")

    def _failed(self, *_: Any) -> bool:
        if self.variant_to_blame:
            self.consumer.hand_out(loop.Stage.VARIANT, "base")
        return self.variant_to_blame


given: list[str] = []


def takes(iterator: Any, factor: int) -> str:
    name = iterator if isinstance(iterator, str) else "own"
    given.append(name)
    if name == "variant":
        raise OutOfRangeError
    return f"{name} {factor}"


@pytest.fixture
def trial() -> Stage:
    given.clear()
    stage = Stage(takes)
    stage.consumer.hand_out(loop.Stage.VARIANT, "variant")
    return stage


def test_a_step_that_a_variant_failed_is_made_with_what_stands_in_now(trial: Stage) -> None:
    trial.variant_to_blame = True

    assert trial.function(trial.iterator, 2) == "base 2"
    assert (given, trial.told) == (["variant", "base"], [])


def test_a_step_that_finds_the_end_of_the_scripts_own_data_tells_so(trial: Stage) -> None:
    with pytest.raises(OutOfRangeError):
        trial.function(trial.iterator, 2)

    assert (given, trial.told) == (["variant"], ["exhausted"])


def test_data_that_fail_while_they_are_looked_at_fail_the_scripts_call(trial: Stage) -> None:
    def looked_at(*_: Any) -> Any:
        raise ScriptsOwnError(OSError("the disk is gone"))

    trial.clock.call_begins = looked_at
    with pytest.raises(OSError, match="the disk is gone"):
        trial.function(trial.iterator, 2)

    assert given == []


def test_a_call_without_an_iterator_is_told_while_batches_are_looked_at(trial: Stage) -> None:
    trial.function("batch", factor=2)
    trial.clock.choice.reads_batches = True
    trial.function("batch", factor=3)

    assert trial.told == [(trial.function, ("batch",), {"factor": 3})]


def test_a_call_that_traced_is_told_with_its_functions_place() -> None:
    counts = [0]

    def traces(often: bool) -> str:
        counts[0] += often
        return "done"

    stage = Stage(traces, traced=lambda: counts[0])
    for often in (True, False, True):
        assert stage.function(often) == "done"

    assert stage.timeline.told == [("first_call", "train")] * 2
    assert [(site.file, site.line) for site in stage.timeline.sites] == [
        (__file__, train.__code__.co_firstlineno)
    ] * 2
    assert stage.told == ["traced, again False", "traced, again True"]


class ShortSteps(Stage):
    def __init__(self) -> None:
        self.traced = 1
        self.fails: Exception | None = None
        super().__init__(self._step, lambda: self.traced)

    def _step(self, _: Any) -> str:
        if self.fails is not None:
            raise self.fails
        return "stepped"

    def call_begins(self, consumer: Any, iterator: Any, function: Any) -> Any:
        self.streak.settle()
        self.told.append("begins")
        self.streak.begins(consumer, 3)
        return iterator

    def makes(self, steps: int) -> list[str]:
        return [self.function(self.iterator) for _ in range(steps)]


def test_most_short_steps_are_only_noted() -> None:
    steps = ShortSteps()

    assert steps.makes(6) == ["stepped"] * 6
    assert steps.told == ["begins", "noted", "noted", "noted", "begins"]
    assert not steps.updates.here.functions


def test_a_noted_step_that_finds_the_end_of_data_tells_so() -> None:
    steps = ShortSteps()
    steps.makes(2)
    steps.fails = OutOfRangeError()
    with pytest.raises(OutOfRangeError):
        steps.makes(1)

    assert steps.told == ["begins", "noted", "noted", "exhausted"]
    assert not steps.updates.here.functions


def test_a_noted_step_that_was_traced_anew_tells_so() -> None:
    steps = ShortSteps()
    for steps.traced in (1, 2):
        steps.makes(1)

    assert steps.told == ["begins", "traced, again True"]
    assert [kind for kind, _ in steps.timeline.told] == ["first_call"]


@pytest.mark.parametrize("entry", ["called", "returned"])
def test_an_error_of_ours_at_a_noted_step_is_not_the_scripts(
    monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    def broken(*_: Any) -> bool:
        raise KeyError("of ours")

    monkeypatch.setattr(Streak, entry, broken)
    steps = ShortSteps()

    assert steps.makes(4) == ["stepped"] * 4
    (note,) = steps.notes
    assert "stopped noting short steps" in note
    assert steps.guard.aside


class Shape(tuple[int, ...]):
    @property
    def rank(self) -> int:
        return len(self)

    def __getitem__(self, key: Any) -> Any:
        return Shape(super().__getitem__(key))

    def as_list(self) -> list[int]:
        return list(self)


def traced(*shapes: tuple[int, ...], dtype: str = "int32") -> Any:
    inputs = [SimpleNamespace(dtype=dtype, shape=Shape(shape)) for shape in shapes]
    held = SimpleNamespace(dtype="resource", shape=Shape(()))
    return SimpleNamespace(graph=SimpleNamespace(inputs=[*inputs, held], captures=[held]))


@pytest.mark.parametrize(
    ("traces", "differ"),
    [
        ([traced((16, 97), (16,)), traced((16, 104), (16,))], True),
        ([traced((16, 97)), traced((12, 97))], False),
        ([traced((16, 97)), traced((16, 97, 3))], False),
        ([traced((16, 97)), traced((16, 104), dtype="float32")], False),
        ([traced((16, 97))], False),
    ],
)
def test_only_what_lies_behind_the_batch_counts(traces: list[Any], differ: bool) -> None:
    function = SimpleNamespace(_list_all_concrete_functions=lambda: traces)
    assert _lengths_differ(function) is differ


@pytest.mark.parametrize("known_by", ["_server_def", "_collective_ops_server_def"])
@pytest.mark.parametrize(
    ("jobs", "told"), [((1,), None), ((1, 2), "TensorFlow is connected to a cluster of 3 tasks")]
)
def test_a_cluster_counts_however_the_script_came_to_know_it(
    monkeypatch: pytest.MonkeyPatch, known_by: str, jobs: tuple[int, ...], told: str | None
) -> None:
    job = [SimpleNamespace(tasks=dict.fromkeys(range(count), "host:1")) for count in jobs]
    server = SimpleNamespace(cluster=SimpleNamespace(job=job))
    context = {"_server_def": None, "_collective_ops_server_def": None, known_by: server}
    module: Any = SimpleNamespace(context=lambda: SimpleNamespace(**context))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)

    assert TensorFlowRuntime().other_processes() == told


def test_a_tensorflow_before_2_17_has_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    operations: Any = ModuleType("tensorflow.python.ops.gen_experimental_dataset_ops")
    monkeypatch.setitem(sys.modules, operations.__name__, operations)
    assert TensorFlowRuntime().no_models is not None

    operations.iterator_get_model_proto = None
    assert TensorFlowRuntime().no_models is None


PROGRAM = """
import time
import tensorflow as tf
from pipediag.capture.frameworks.tensorflow.runtime import settled_ns

tf.config.set_visible_devices([], "GPU")
print(settled_ns(7))
tf.random.normal((500, 500)) @ tf.random.normal((500, 500))
before = time.monotonic_ns()
print(settled_ns(before, ["/device:CPU:0"]) > before)
"""


@pytest.mark.tensorflow
def test_work_behind_python_is_waited_for() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert said.stdout.split() == ["7", "True"]


FILES = ("kept_0.lockfile", "kept_0.data-00000-of-00001", "kept_0.data-00000-of-00001.tempstate12",
         "kept_0.index", "kept_notes.txt", "kept_0.lockfile_of_mine.txt ")  # fmt: skip


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (FILES, {"kept_notes.txt", "kept_0.lockfile_of_mine.txt "}),
        (("kept_0.lockfile", "kept.index"), {"kept_0.lockfile", "kept.index"}),
    ],
)
def test_what_was_written_of_a_cut_cache_goes_and_nothing_else(
    tmp_path: Path, names: tuple[str, ...], left: set[str]
) -> None:
    for name in names:
        (tmp_path / name).write_text("x")
    file = {"filename": str(tmp_path / "kept")}
    remove_cut_caches([RecordedOperation("op1", "cache", "op1", None, None, parameters=file)], 0.0)
    assert {path.name for path in tmp_path.iterdir()} == left


class Base:
    trainable = True
    dtype = SimpleNamespace(is_floating=True)

    def assign(self, value: int) -> int:
        return value


class Resource(Base):
    pass


def test_writes_that_tensorflow_has_put_around_those_of_the_class_are_seen() -> None:
    """As its operations on weak tensors do with `ResourceVariable`, once they are imported."""
    originals = Base.assign
    Resource.assign = originals  # type: ignore[method-assign]
    updates = UpdateWatch()
    hooks: Any = SimpleNamespace(_with=SimpleNamespace(updates=updates), _guard=Guard(print))
    module = SimpleNamespace(BaseResourceVariable=Base, ResourceVariable=Resource)
    TensorFlow._on_variables(hooks, module)

    assert Resource().assign(3) == 3
    assert updates.here.updated


def test_loops_that_can_not_be_watched_are_registered_as_ever() -> None:
    notes: list[str] = []
    registered: list[str] = []
    hooks: Any = SimpleNamespace(_guard=Guard(notes.append))
    module = SimpleNamespace(register_overrides=registered.append)
    TensorFlow._on_dataset_autograph(hooks, module)
    module.register_overrides("loops over datasets")

    assert registered == ["loops over datasets"]
    (note,) = notes
    assert "stopped watching loops inside tf.functions after an error" in note
