"""Ends a call of a tf.function from another thread, where TensorFlow can.

The context that this takes came with TensorFlow 2.13.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

_NO_CONTEXT = (
    "This TensorFlow has no way to cancel a tf.function that is running, so a loop inside one goes "
    "on to its end after it was measured."
)
_SCRIPTS_OWN = (
    "The script can cancel its tf.function itself, which is left alone, so the loop inside it goes "
    "on to its end after it was measured."
)


class OfOneCall:
    """Of one call, which has to be made inside `context`."""

    def __init__(self) -> None:
        from tensorflow.python.eager import cancellation

        self.lack = _lack(cancellation)
        """Why the call can't be cancelled; None where it can."""
        self.started = False
        self._manager: Any = None
        self.context: AbstractContextManager[Any] = nullcontext()
        if self.lack is None:
            self._manager = cancellation.CancellationManager()
            self.context = cancellation.CancellationManagerContext(self._manager)

    def start(self) -> None:
        """Cancel the call, which then raises CancelledError, or ends as if its data had ended."""
        self.started = True
        self._manager.start_cancel()


def _lack(cancellation: Any) -> str | None:
    if not hasattr(cancellation, "CancellationManagerContext"):
        return _NO_CONTEXT
    return None if cancellation.context() is None else _SCRIPTS_OWN
