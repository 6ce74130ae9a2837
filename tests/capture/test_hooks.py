"""Hooks on TensorFlow's functions, played by a class of the same shape."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.conductor import StopScript
from pipediag.capture.hooks import Hooks
from pipediag.capture.updates import UpdateWatch


class OutOfRangeError(Exception):
    """TensorFlow's."""


class CancelledError(Exception):
    """TensorFlow's."""


class FakeInGraph:
    """Cancels the next call that is made through it."""

    enough = False

    def __init__(self) -> None:
        self.cancels = True
        self._cancelled = False

    def runs(self, function: Any) -> bool:
        return False

    def call(self, function: Any, args: tuple[Any, ...], invoke: Callable[[], Any]) -> Any:
        self._cancelled, self.cancels = self.cancels, False
        return invoke()

    def was_cancelled(self) -> bool:
        cancelled, self._cancelled = self._cancelled, False
        return cancelled


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

    parts: dict[str, Any] = dict.fromkeys(("plan", "profiler", "held", "other_uses", "note"))
    hooks = Hooks(
        conductor=Conductor(),  # type: ignore[arg-type]
        updates=UpdateWatch(),
        in_graph=FakeInGraph(),  # type: ignore[arg-type]
        **parts,
    )
    errors = SimpleNamespace(OutOfRangeError=OutOfRangeError, CancelledError=CancelledError)
    hooks._on_functions(SimpleNamespace(Function=Function, errors=errors))
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
