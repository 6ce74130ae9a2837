"""Tells training from looking: a step trains when it writes a trainable variable.

Methods of TensorFlow's variables are wrapped. Inside a tf.function they run only while it is
traced, and mark the function; in steady state a traced step costs nothing here.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

_WRITES = (
    "assign assign_add assign_sub scatter_add scatter_sub scatter_update scatter_nd_add "
    "scatter_nd_sub scatter_nd_update batch_scatter_update"
).split()


class UpdateWatch:
    """Knows which functions write trainable variables, and whether one was written lately."""

    def __init__(self) -> None:
        self.updated = False
        self.tracing_ns = 0
        """Time spent tracing functions called from the script's own level, since the last step."""
        self._tracing = False
        self._running: list[Any] = []
        self._training: set[int] = set()

    def install_variables(self, variable_class: type) -> None:
        """Wrap the writing methods of a variable class."""
        for name in _WRITES:
            method = variable_class.__dict__.get(name)
            if method is not None:
                setattr(variable_class, name, self._watched(method))

    def install_optimizer(self, optimizer_class: type, method: str) -> None:
        """Wrap an optimiser's step, for those that write by native operations."""
        original = getattr(optimizer_class, method)

        @functools.wraps(original)
        def apply(*args: Any, **kwargs: Any) -> Any:
            self.note()
            return original(*args, **kwargs)

        setattr(optimizer_class, method, apply)

    def note(self) -> None:
        """A trainable variable is being written, or a function is traced that will write it."""
        self.updated = True
        self._training.update(id(function) for function in self._running)

    def enter(self, function: Any) -> None:
        self._running.append(function)
        if id(function) in self._training:
            self.updated = True

    def leave(self) -> None:
        self._running.pop()

    def trains(self, function: Any) -> bool:
        return id(function) in self._training

    @property
    def outermost(self) -> Any:
        """The tf.function that the script's own level has called, while it is traced or runs."""
        return self._running[0] if self._running else None

    @property
    def inside_function(self) -> bool:
        return bool(self._running)

    def timed(self, trace: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap TensorFlow's tracing of a Python function, to know what it takes."""

        @functools.wraps(trace)
        def timed_trace(*args: Any, **kwargs: Any) -> Any:
            if self._tracing or not self._running:
                return trace(*args, **kwargs)
            self._tracing = True
            began = time.monotonic_ns()
            try:
                return trace(*args, **kwargs)
            finally:
                self.tracing_ns += time.monotonic_ns() - began
                self._tracing = False

        return timed_trace

    def _watched(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def write(variable: Any, *args: Any, **kwargs: Any) -> Any:
            # Counters are made trainable by default too; none of them can be trained.
            if variable.trainable and variable.dtype.is_floating:
                self.note()
            return method(variable, *args, **kwargs)

        return write
