"""Hears of the operations that one thread runs, by TensorFlow's own callbacks.

These are the program's as much as ours: what others have put among them stays in effect, and ours
is gone as soon as nothing more is to be heard.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

from pipediag.capture.guard import Guard, attempt

Told = Callable[[Any, Sequence[Any], Any, Any], bool]
"""Of an operation's type, inputs, attributes and outputs; returns whether to tell of the next."""

MOST_SECONDS = 10
"""Own choice: a step that takes so long may be none, as its loop was left in the middle of it."""

_TOO_LONG = f"The step had not ended after {MOST_SECONDS} s, so that it was listened to no longer."
_SILENCED = "Something else ended TensorFlow's telling of operations in the middle of the step."


class Listening:
    """To the operations of the thread that begins it, once."""

    def __init__(self, told: Told) -> None:
        self._told: Told | None = told
        self.lack: str | None = None
        """Why it stopped by itself, as a sentence."""
        self._until_ns = 0
        self._others_hear = False
        """Whether the script has callbacks on another thread."""
        # TensorFlow's C++ calls it without a reference of its own, and it may take itself out.
        self._callback = self._operation

    def begin(self) -> None:
        """Tell of each from here on, until told to end or that it was enough."""
        from tensorflow.python.eager import context, execute
        from tensorflow.python.framework import op_callbacks

        patched = execute.execute is execute.execute_with_callbacks
        self._others_hear = patched and not context.context().op_callbacks
        self._until_ns = time.monotonic_ns() + MOST_SECONDS * 1_000_000_000
        op_callbacks.add_op_callback(self._callback)

    def end(self) -> None:
        """Hear of none any more; on another thread, the callback leaves with its next operation."""
        from tensorflow.python.eager import execute

        if self._told is not None and execute.execute is execute.quick_execute:
            self.lack = _SILENCED
        self._told = None
        self._leave()

    def _operation(
        self,
        kind: Any,
        inputs: Sequence[Any],
        attributes: Any,
        outputs: Any,
        op_name: Any = None,  # noqa: ARG002
        graph: Any = None,
    ) -> Any:
        # Those of a graph that is being built are none that have run.
        if self._told is not None and graph is None:
            what = "listening to the operations of a step"
            attempt(self._stop, what, self._hear, kind, inputs, attributes, outputs)
        if self._told is None:
            attempt(self._stop, "leaving the operations of a thread", self._leave_if_last)
        # The tensors of a graph are what the callback before this one has made of them.
        return None if graph is None else outputs

    def _hear(self, kind: Any, inputs: Sequence[Any], attributes: Any, outputs: Any) -> None:
        if time.monotonic_ns() > self._until_ns:
            self._stop(_TOO_LONG)
        elif self._told is not None and not self._told(kind, inputs, attributes, outputs):
            self._told = None

    def _stop(self, reason: str) -> None:
        self._told, self.lack = None, reason

    def _leave_if_last(self) -> None:
        """Not in front of another one: TensorFlow would skip that."""
        from tensorflow.python.eager import context

        if context.context().op_callbacks[-1:] == [self._callback]:
            self._leave()

    def _leave(self) -> None:
        from tensorflow.python.eager import context, execute
        from tensorflow.python.framework import op_callbacks

        callbacks = context.context().op_callbacks
        if self._callback not in callbacks:
            return
        op_callbacks.remove_op_callback(self._callback)
        if not callbacks:  # which TensorFlow does not ask while a graph is being built
            still = self._others_hear
            execute.execute = execute.execute_with_callbacks if still else execute.quick_execute


def hear_cancellable_calls(execute: Any, guard: Guard) -> None:
    """Hook onto calls of functions that can be cancelled, of which TensorFlow tells no callback."""
    original = execute.execute_with_cancellation
    heard = guard.entry("hearing of calls that can be cancelled", _tell_ours)

    def call(*args: Any, **kwargs: Any) -> Any:
        outputs = original(*args, **kwargs)
        heard(outputs, *args, **kwargs)
        return outputs

    execute.execute_with_cancellation = guard.hook(original, call)


def _tell_ours(
    outputs: Any,
    op_name: Any,
    num_outputs: int,  # noqa: ARG001
    inputs: Any,
    attrs: Any,
    *_: Any,
    **__: Any,
) -> None:
    from tensorflow.python.eager import context

    for callback in tuple(context.context().op_callbacks):
        # What the script has put there would natively not hear of it.
        if type(callback) is MethodType and type(callback.__self__) is Listening:
            callback(op_name, inputs, attrs, outputs)
