from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.framework import watch_writes
from pipediag.capture.guard import Guard
from pipediag.capture.runtime import IteratorModel
from pipediag.capture.watching.updates import UpdateWatch, describe_start
from tests.capture.instruments import FakeTimeline, ToyRuntime, consumer_of, training_loop


class Variable:
    def __init__(self, trainable: bool, floating: bool = True) -> None:
        self.trainable = trainable
        self.dtype = SimpleNamespace(is_floating=floating)
        self.value = 0

    def assign(self, value: int) -> int:
        self.value = value
        return value

    def read(self) -> int:
        return self.value


class Optimizer:
    def apply_gradients(self, gradients: list[int]) -> int:
        return len(gradients)


class Function:
    """A tf.function."""


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> UpdateWatch:
    monkeypatch.setattr(Variable, "assign", Variable.assign)
    monkeypatch.setattr(Optimizer, "apply_gradients", Optimizer.apply_gradients)
    watch, guard = UpdateWatch(), Guard(print)
    watch_writes([Variable], watch, guard)
    watch.install_optimizer(Optimizer, guard)
    return watch


def test_a_function_that_was_traced_with_an_update_always_updates(watch: UpdateWatch) -> None:
    outer, inner, other = Function(), Function(), Function()
    watch.enter(outer)
    watch.enter(inner)
    Variable(trainable=True).assign(1)
    watch.leave()
    watch.leave()
    watch.take_updated()

    watch.enter(other)
    watch.leave()
    assert (watch.trains(other), watch.here.updated) == (False, False)

    watch.enter(outer)
    assert (watch.trains(outer), watch.trains(inner), watch.here.updated) == (True, True, True)


def on_another_thread(work: Callable[[], object], started: UpdateWatch | None = None) -> None:
    thread = threading.Thread(target=work)
    if started is not None:
        started.begins_replica(thread)
    thread.start()
    thread.join()


def test_what_another_thread_writes_is_no_step_of_this_one(watch: UpdateWatch) -> None:
    predicts = Function()
    watch.enter(predicts)
    on_another_thread(lambda: Variable(trainable=True).assign(1))
    watch.leave()

    assert (watch.trains(predicts), watch.here.updated) == (False, False)


def test_what_a_replica_writes_is_a_step_of_the_thread_that_began_it(watch: UpdateWatch) -> None:
    step, within, beside = Function(), Function(), Function()

    def replica() -> None:
        watch.enter(within)
        Variable(trainable=True).assign(1)
        watch.leave()

    def while_another_predicts() -> None:
        watch.enter(beside)
        began.set()
        assert ended.wait(10)

    began, ended = threading.Event(), threading.Event()
    other = threading.Thread(target=while_another_predicts)
    other.start()
    assert began.wait(10)
    watch.enter(step)
    on_another_thread(replica, started=watch)
    watch.leave()
    ended.set()
    other.join()

    assert (watch.trains(step), watch.trains(within), watch.here.updated) == (True, True, True)
    assert not watch.trains(beside)


def test_tracing_below_a_function_is_timed_and_told_to_the_timeline(
    watch: UpdateWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("time.monotonic_ns", lambda: next(clock))

    def trace(depth: int) -> Any:
        return timed(depth - 1) if depth else "graph"

    timeline: Any = FakeTimeline()
    timed = watch.timed(trace, Guard(print), timeline)
    assert timed(0) == "graph"
    assert (watch.here.tracing_ns, timeline.told) == (0, [])

    timeline.in_a_call = True
    timed(2)
    timeline.in_a_call = False
    assert (watch.here.tracing_ns, timeline.told) == (10, [("tracing", "")])
    watch.enter(Function())
    assert timed(2) == "graph"
    assert (watch.here.tracing_ns, timeline.told) == (20, [("tracing", "")] * 2)


MS = 1_000_000


def test_the_first_steps_tell_what_they_took_of_tracing_and_of_filling_the_pipeline() -> None:
    loop, runtime, described = training_loop(), ToyRuntime(), list[Any]()
    loop.runtime, runtime.models = runtime, [IteratorModel([100_000, 9_000_000], [], 0)]
    consumer = consumer_of(loop)
    consumer.hand_over = "call"
    registry: Any = SimpleNamespace(describe_keras=described.append)
    updates: Any = SimpleNamespace(here=SimpleNamespace(tracing_ns=300 * MS))
    for took_ns in (1000 * MS, 10 * MS):
        describe_start(registry, updates, consumer, took_ns)

    assert (loop.record.first_step_ns, loop.traced_in_first_step_ns) == (1000 * MS, 300 * MS)
    assert described == [loop]
    # Of the first second, tracing took 0.3 s and the consumer 0.1 s.
    assert loop.record.fill_ns == 600 * MS
