"""The clock around a registry of Python functions, with no TensorFlow."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipediag.capture.guard import Guard
from pipediag.capture.measuring.sampling import PythonClock


def make_registry() -> Any:
    """A class like TensorFlow's, of its own for each test."""

    class Registry:
        def __call__(self, token: str, device: str, args: list[Any]) -> Any:
            if token == "fails":
                raise ValueError(*args)
            return args[0]

    return Registry


class Clocked:
    def __init__(self) -> None:
        self.registry = make_registry()
        self.native = self.registry.__dict__["__call__"]
        self.notes: list[str] = []
        self.guard = Guard(self.notes.append)
        self.clock = PythonClock()
        self.clock.hook_into(self.registry, self.guard)

    def call(self, token: str = "warp", value: Any = 1) -> Any:
        return self.registry()(token, "cpu", [value])

    @property
    def is_native(self) -> bool:
        return self.registry.__dict__["__call__"] is self.native


@pytest.fixture
def clocked() -> Clocked:
    return Clocked()


def test_calls_count_while_it_runs(clocked: Clocked) -> None:
    clocked.clock.begin("fit")
    clocked.call()
    clocked.clock.run("fit", running=True)
    result = object()
    assert clocked.call(value=result) is result
    clocked.call()
    clocked.call("crop")
    clocked.clock.run("fit", running=False)
    clocked.call()

    measured = clocked.clock.end("fit")

    assert measured is not None
    assert {one.token: one.calls for one in measured} == {"warp": 2, "crop": 1}
    assert all(one.wall_ns > 0 and one.cpu_ns >= 0 for one in measured)
    assert clocked.is_native


def test_outside_of_the_window_the_registry_is_as_it_was(clocked: Clocked) -> None:
    assert clocked.is_native
    clocked.clock.begin("fit")
    assert not clocked.is_native
    clocked.clock.end("fit")
    assert clocked.is_native


def test_an_error_of_the_function_is_the_scripts(clocked: Clocked) -> None:
    clocked.clock.begin("fit")
    clocked.clock.run("fit", running=True)

    with pytest.raises(ValueError, match="bad row"):
        clocked.call("fails", "bad row")

    (calls,) = clocked.clock.end("fit") or ()
    assert calls.calls == 1
    assert clocked.notes == []


def test_an_error_of_ours_is_not(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    clocked.clock.begin("fit")
    clocked.clock.run("fit", running=True)
    monkeypatch.setattr(clocked.clock, "_totals", None)

    assert clocked.call(value=7) == 7
    assert len(clocked.notes) == 1


def test_one_loop_is_measured_at_a_time(clocked: Clocked) -> None:
    clocked.clock.begin("outer")
    clocked.clock.run("outer", running=True)
    clocked.clock.begin("inner")
    clocked.clock.run("inner", running=False)
    clocked.call()

    assert clocked.clock.end("inner") is None
    (calls,) = clocked.clock.end("outer") or ()
    assert calls.calls == 1


def test_calls_of_several_threads_are_all_counted(clocked: Clocked) -> None:
    clocked.clock.begin("fit")
    clocked.clock.run("fit", running=True)
    together = threading.Barrier(4)

    def work(_: int) -> None:
        together.wait()
        for _ in range(200):
            clocked.call()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    (calls,) = clocked.clock.end("fit") or ()
    assert calls.calls == 800


def test_without_tensorflow_nothing_is_measured() -> None:
    clock = PythonClock()
    clock.begin("fit")
    clock.run("fit", running=True)

    assert clock.end("fit") is None


def test_after_a_fork_and_when_given_up_the_registry_is_as_it_was(clocked: Clocked) -> None:
    clocked.clock.begin("fit")
    clocked.guard._forked()
    assert clocked.is_native

    clocked = Clocked()
    clocked.clock.begin("fit")
    clocked.guard.give_up()
    assert clocked.is_native
