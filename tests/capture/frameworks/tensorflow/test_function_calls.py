"""Hooks on TensorFlow's functions, played by a class of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.function_calls import FunctionCalls
from pipediag.capture.guard import Guard
from pipediag.capture.stop_script import StopScript
from pipediag.capture.watching.updates import UpdateWatch


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

    def call_begins(self, function: Any, args: tuple[Any, ...]) -> Any:
        started, self.cancels = self.cancels, False
        return SimpleNamespace(cancellation=SimpleNamespace(started=started, context=nullcontext()))

    def call_ended(self, call: Any) -> None: ...


class Conductor:
    in_a_loop = True

    def stop(self) -> None:
        raise StopScript

    def function_traced(self, function: Any, again: bool) -> None: ...


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
    nobody: Any = None
    calls = FunctionCalls(
        conductor, UpdateWatch(), in_graph, nobody, nobody, lambda args: (None, None)
    )
    errors = SimpleNamespace(OutOfRangeError=OutOfRangeError, CancelledError=CancelledError)
    notes: list[str] = []
    calls.install(SimpleNamespace(Function=Function, errors=errors), Guard(notes.append))
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
