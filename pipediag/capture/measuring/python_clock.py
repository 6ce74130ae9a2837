"""Measures the Python functions that pipelines call: wall time and thread CPU time of each call.

All of them are called through one registry of TensorFlow's: those of `py_function` and
`numpy_function`, the `next` of a generator, and with it the `__getitem__` of a Keras PyDataset.
The registry's call is replaced only from `begin` to `end`, so that calls outside of the baseline
cost nothing; the functions themselves stay what they are.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pipediag.capture.guard import Guard
from pipediag.session.recorded_windows import RecordedPythonCalls


class PythonClock:
    """Adds up calls by the token under which TensorFlow knows the function."""

    def __init__(self) -> None:
        self._registry: Any = None
        self._original: Callable[..., Any] | None = None
        self._clocked: Callable[..., Any] | None = None
        self._lock = threading.Lock()
        self._loop_id: str | None = None
        self._running = False
        self._totals: dict[str, list[int]] = {}

    def hook_into(self, registry: type, guard: Guard) -> None:
        """Know the class whose `__call__` TensorFlow calls with a token, a device and arguments."""
        original: Callable[..., Any] = registry.__dict__["__call__"]
        add = guard.entry("measuring the Python functions of pipelines", self._add)

        def clocked(registry: Any, token: str, *args: Any) -> Any:
            if not self._running:
                return original(registry, token, *args)
            wall_ns, cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
            try:
                return original(registry, token, *args)
            finally:
                add(token, time.perf_counter_ns() - wall_ns, time.thread_time_ns() - cpu_ns)

        self._registry, self._original = registry, original
        self._clocked = guard.hook(original, clocked)
        guard.in_forked_child(self._put_back)
        guard.when_given_up(self._put_back)
        guard.when_dismissed(self._put_back)

    def begin(self, loop_id: str) -> None:
        """Get ready to measure for a loop; another that is being measured for goes on alone."""
        if self._registry is None or self._loop_id is not None:
            return
        self._loop_id, self._totals = loop_id, {}
        self._registry.__call__ = self._clocked

    def run(self, loop_id: str, *, running: bool) -> None:
        """Measure calls that begin from now on, or don't, as between epochs."""
        if self._loop_id == loop_id:
            self._running = running

    def end(self, loop_id: str) -> list[RecordedPythonCalls] | None:
        """Return what was measured for that loop, if anything, and leave the registry as it was."""
        if self._loop_id != loop_id:
            return None
        self._put_back()
        with self._lock:
            totals, self._totals = self._totals, {}
        return [RecordedPythonCalls(token, *spent) for token, spent in totals.items()]

    def _put_back(self) -> None:
        self._running, self._loop_id = False, None
        if self._registry is not None and self._registry.__dict__["__call__"] is self._clocked:
            self._registry.__call__ = self._original

    def _add(self, token: str, wall_ns: int, cpu_ns: int) -> None:
        with self._lock:
            spent = self._totals.setdefault(token, [0, 0, 0])
            spent[0] += 1
            spent[1] += wall_ns
            spent[2] += cpu_ns


PYTHON_CLOCK = PythonClock()
"""One for all that a process trains: TensorFlow has one registry."""
