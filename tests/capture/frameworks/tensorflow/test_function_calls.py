"""Hooks on TensorFlow's functions, played by a class of the same shape."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.function_calls import FunctionCalls, _lengths_differ
from pipediag.capture.guard import Guard, StopScript
from pipediag.capture.loops.loop import StandIn
from pipediag.capture.watching.conductor import ScriptsOwnError
from pipediag.capture.watching.streak import Streak
from pipediag.capture.watching.updates import UpdateWatch
from tests.capture.instruments import FakeTimeline
from tests.capture.runtimes import ToyRuntime


class OutOfRangeError(Exception):
    """TensorFlow's."""


class CancelledError(Exception):
    """TensorFlow's."""


class FakeInGraph:
    """Cancels the next call that is made through it."""

    enough = False

    def __init__(self) -> None:
        self.cancels = True

    def runs(self, function: Any) -> bool:
        return False

    def call_begins(self, function: Any, given: Any, cancellation: Any) -> Any:
        cancellation.started, self.cancels = self.cancels, False
        return SimpleNamespace(cancellation=cancellation)

    def call_ended(self, call: Any) -> None: ...


class Conductor:
    in_a_loop = True
    diagnosing = SimpleNamespace(looks=False)
    streak = Streak(lambda *_: None)

    @property
    def stopping(self) -> Conductor:
        return self

    def stop(self) -> None:
        raise StopScript

    def function_traced(self, function: Any, **_: bool) -> None: ...


@pytest.fixture
def function() -> Any:
    """A tf.function as the hooks leave it, which does what it is given."""

    class Function:
        def __call__(self, does: Callable[[], Any]) -> Any:
            return does()

        def experimental_get_tracing_count(self) -> int:
            return 0

    in_graph: Any = FakeInGraph()
    conductor: Any = Conductor()
    notes: list[str] = []
    watchers: Any = SimpleNamespace(
        guard=Guard(notes.append),
        conductor=conductor,
        updates=UpdateWatch(),
        in_graph=in_graph,
        held=SimpleNamespace(loop=None),
        timeline=FakeTimeline(),
        other_uses=None,
    )
    calls = FunctionCalls(watchers, ToyRuntime(), lambda args: (None, None))
    errors = SimpleNamespace(OutOfRangeError=OutOfRangeError, CancelledError=CancelledError)
    calls.install(SimpleNamespace(Function=Function, errors=errors), watchers.guard)
    return Function()


def fail() -> None:
    raise CancelledError


@pytest.mark.parametrize("ends", [fail, lambda: "as if the data had ended"])
def test_a_cancelled_call_stops_the_script_however_it_ends(
    function: Any, ends: Callable[[], Any]
) -> None:
    with pytest.raises(StopScript):
        function(ends)


def test_what_the_script_calls_while_it_is_stopped_goes_on(function: Any) -> None:
    with pytest.raises(StopScript):
        function(lambda: 1)

    assert function(lambda: 2) == 2
    with pytest.raises(CancelledError):
        function(fail)


class Step:
    """A tf.function that was traced before, and is given an iterator of ours."""

    def __init__(self, arm_to_blame: bool) -> None:
        self.stand_in = StandIn()
        self.stand_in.lend("arm")
        self.exhausted = 0
        self.given: list[str] = []
        self._arm_to_blame = arm_to_blame
        self.consumer: Any = SimpleNamespace(stand_in=self.stand_in)
        step = self

        class Function:
            def __call__(self, iterator: str, factor: int) -> str:
                step.given.append(iterator)
                if iterator == "arm":
                    raise OutOfRangeError
                return f"{iterator} {factor}"

            def experimental_get_tracing_count(self) -> int:
                return 1

        self.conductor: Any = SimpleNamespace(
            in_a_loop=True,
            call_begins=lambda _, iterator, function: self.stand_in.asked(iterator),
            diagnosing=SimpleNamespace(looks=False),
            exhausted=self._exhausted,
            streak=Streak(lambda *_: None),
        )
        held: Any = SimpleNamespace(loop="loop1", failed=self._failed)
        in_graph: Any = SimpleNamespace(runs=lambda _: False)
        watchers: Any = SimpleNamespace(
            guard=Guard(lambda _: None),
            conductor=self.conductor,
            timeline=FakeTimeline(),
            updates=UpdateWatch(),
            in_graph=in_graph,
            held=held,
            other_uses=None,
        )
        calls = FunctionCalls(watchers, ToyRuntime(), lambda args: (self.consumer, args[0]))
        errors = SimpleNamespace(OutOfRangeError=OutOfRangeError)
        calls.install(SimpleNamespace(Function=Function, errors=errors), watchers.guard)
        self.function: Any = Function()

    def _exhausted(self, _: Any) -> None:
        self.exhausted += 1

    def _failed(self, *_: Any) -> bool:
        if self._arm_to_blame:
            self.stand_in.lend("base")
        return self._arm_to_blame


def test_a_step_that_an_arm_failed_is_made_with_what_stands_in_now() -> None:
    step = Step(arm_to_blame=True)

    assert step.function("own", 2) == "base 2"
    assert (step.given, step.exhausted) == (["arm", "base"], 0)


def test_a_step_that_finds_the_end_of_the_scripts_own_data_tells_so() -> None:
    step = Step(arm_to_blame=False)
    with pytest.raises(OutOfRangeError):
        step.function("own", 2)

    assert (step.given, step.exhausted) == (["arm"], 1)


def test_data_that_fail_while_they_are_looked_at_fail_the_scripts_call() -> None:
    step = Step(arm_to_blame=False)

    def looked_at(consumer: Any, iterator: Any, function: Any) -> Any:
        raise ScriptsOwnError(OSError("the disk is gone"))

    step.conductor.call_begins = looked_at
    with pytest.raises(OSError, match="the disk is gone"):
        step.function("own", 2)

    assert step.given == []


def test_a_call_without_an_iterator_is_told_while_batches_are_looked_at() -> None:
    step = Step(arm_to_blame=False)
    step.consumer = None
    told: list[Any] = []
    step.conductor.function_called = lambda *call: told.append(call)
    step.function("batch", factor=2)
    step.conductor.diagnosing.looks = True
    step.function("batch", factor=3)

    assert told == [(step.function, ("batch",), {"factor": 3})]


class Tracing:
    """A function of the script's that is traced when its calls say so."""

    def __init__(self, loops_itself: bool = False) -> None:
        self.count = 0
        self.notes: list[str] = []
        self.timeline = FakeTimeline()
        self.traced: list[bool] = []
        tracing = self

        def step(self: Any, traces: bool) -> str:
            tracing.count += traces
            return "done"

        class Function:
            python_function = staticmethod(train)
            __call__ = step

            def experimental_get_tracing_count(self) -> int:
                return tracing.count

        in_graph: Any = FakeInGraph()
        in_graph.cancels = False
        in_graph.runs = lambda _: loops_itself
        conductor: Any = SimpleNamespace(
            in_a_loop=True,
            diagnosing=SimpleNamespace(looks=False),
            streak=Streak(lambda *_: None),
            function_traced=lambda _, again, **__: self.traced.append(again),
        )
        watchers: Any = SimpleNamespace(
            guard=Guard(self.notes.append),
            conductor=conductor,
            timeline=self.timeline,
            updates=UpdateWatch(),
            in_graph=in_graph,
            held=SimpleNamespace(loop=None),
            other_uses=None,
        )
        calls = FunctionCalls(watchers, ToyRuntime(), lambda args: (None, None))
        errors = SimpleNamespace(OutOfRangeError=OutOfRangeError)
        calls.install(SimpleNamespace(Function=Function, errors=errors), watchers.guard)
        self.function: Any = Function()


def train(batch: Any) -> Any:
    return batch


def test_a_call_that_traced_is_told_with_its_functions_place() -> None:
    tracing = Tracing()
    for traces in (True, False, True):
        assert tracing.function(traces) == "done"

    assert tracing.timeline.told == [("first_call", "train")] * 2
    assert [(site.file, site.line) for site in tracing.timeline.sites] == [
        (__file__, train.__code__.co_firstlineno)
    ] * 2
    assert tracing.traced == [False, True]


class ShortSteps:
    """A tf.function called with an iterator, step by step, of which a streak notes most."""

    def __init__(self) -> None:
        self.iterator: Any = ToyIterator()
        self.consumer: Any = SimpleNamespace(
            hand_over="call", iterator=weakref.ref(self.iterator), stand_in=StandIn()
        )
        self.traced = 1
        self.fails: Exception | None = None
        self.told: list[str] = []
        self.streak = Streak(lambda *_: self.told.append("noted"))
        conductor: Any = SimpleNamespace(
            in_a_loop=True,
            diagnosing=SimpleNamespace(looks=False),
            streak=self.streak,
            call_begins=self._begins,
            exhausted=self._exhausted,
            function_traced=lambda _, again, **__: self.told.append(f"traced, again {again}"),
        )
        steps = self

        class Function:
            def __call__(self, iterator: Any) -> str:
                if steps.fails is not None:
                    raise steps.fails
                return "stepped"

            def experimental_get_tracing_count(self) -> int:
                return steps.traced

        held: Any = SimpleNamespace(loop=None, failed=lambda *_: False)
        self.updates = UpdateWatch()
        self.timeline = FakeTimeline()
        self.notes: list[str] = []
        self.guard = Guard(self.notes.append)
        watchers: Any = SimpleNamespace(
            guard=self.guard,
            conductor=conductor,
            timeline=self.timeline,
            updates=self.updates,
            in_graph=SimpleNamespace(runs=lambda _: False),
            held=held,
            other_uses=None,
        )
        calls = FunctionCalls(watchers, ToyRuntime(), self._consumer_among)
        errors = SimpleNamespace(OutOfRangeError=OutOfRangeError)
        calls.install(SimpleNamespace(Function=Function, errors=errors), watchers.guard)
        self.function: Any = Function()

    def _consumer_among(self, args: tuple[Any, ...]) -> tuple[Any, Any]:
        return (self.consumer, args[0]) if args[0] is self.iterator else (None, None)

    def _begins(self, consumer: Any, iterator: Any, function: Any) -> Any:
        self.streak.settle()
        self.told.append("begins")
        self.streak.begins(consumer, 3)
        return iterator

    def _exhausted(self, _: Any) -> None:
        self.streak.settle()
        self.told.append("exhausted")


class ToyIterator:
    """What can be referred to weakly."""


def test_most_short_steps_are_only_noted() -> None:
    steps = ShortSteps()
    assert [steps.function(steps.iterator) for _ in range(6)] == ["stepped"] * 6

    assert steps.told == ["begins", "noted", "noted", "noted", "begins"]
    assert not steps.updates.inside_function


def test_a_noted_step_that_finds_the_end_of_data_tells_so() -> None:
    steps = ShortSteps()
    for _ in range(2):
        steps.function(steps.iterator)
    steps.fails = OutOfRangeError()
    with pytest.raises(OutOfRangeError):
        steps.function(steps.iterator)

    assert steps.told == ["begins", "noted", "noted", "exhausted"]
    assert not steps.updates.inside_function


def test_a_noted_step_that_was_traced_anew_tells_so() -> None:
    steps = ShortSteps()
    for steps.traced in (1, 2):
        steps.function(steps.iterator)

    assert steps.told == ["begins", "traced, again True"]
    assert [kind for kind, _ in steps.timeline.told] == ["first_call"]


@pytest.mark.parametrize("entry", ["called", "returned"])
def test_an_error_of_ours_at_a_noted_step_is_not_the_scripts(
    monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    def fail(*_: Any) -> bool:
        raise KeyError("of ours")

    monkeypatch.setattr(Streak, entry, fail)
    steps = ShortSteps()

    assert [steps.function(steps.iterator) for _ in range(4)] == ["stepped"] * 4
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
    """A trace for tensors of these shapes, which also reads a variable."""
    inputs = [SimpleNamespace(dtype=dtype, shape=Shape(shape)) for shape in shapes]
    held = SimpleNamespace(dtype="resource", shape=Shape(()))
    return SimpleNamespace(graph=SimpleNamespace(inputs=[*inputs, held], captures=[held]))


def function_of(*traces: Any) -> Any:
    return SimpleNamespace(_list_all_concrete_functions=lambda: list(traces))


@pytest.mark.parametrize(
    ("traces", "differ"),
    [
        ([traced((16, 97), (16,)), traced((16, 104), (16,))], True),
        ([traced((16, 97)), traced((12, 97))], False),
        ([traced((16,)), traced((16,))], False),
        ([traced((16, 97)), traced((16, 97, 3))], False),
        ([traced((16, 97)), traced((16, 104), dtype="float32")], False),
        ([traced((16, 97))], False),
        ([], False),
    ],
)
def test_only_what_lies_behind_the_batch_counts(traces: list[Any], differ: bool) -> None:
    assert _lengths_differ(function_of(*traces)) is differ
