"""Limits on work that is only tried: what hangs must not take the script with it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from pipediag.capture.runtime import Cancellation

STEP_LIMIT_S = 20.0
"""Own choice: no step that is worth trying takes longer, and tracing it anew hardly does."""

WORK_LIMIT_S = 45.0
"""Own choice: to build an arm, look at its elements and fill its caches takes a few seconds each.
The parent, which ends a process that does not answer, waits longer."""

_LOOK_EVERY_S = 0.25
Result = TypeVar("Result")


class DidNotComeBackError(Exception):
    """Work took longer than its limit, and goes on in a thread that nobody waits for."""


def within_limit(work: Callable[[], Result], seconds: float = WORK_LIMIT_S) -> Result:
    """Do it in a thread of its own, and wait no longer than that.

    Raises:
        DidNotComeBackError: it took longer.
        Exception: whatever the work raised.
    """
    results: list[Result] = []
    errors: list[Exception] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            errors.append(error)

    worker = threading.Thread(target=run, name="pipediag-trial", daemon=True)
    worker.start()
    worker.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise DidNotComeBackError(f"a trial did not come back within {seconds:g} s")
    return results[0]


class StepLimit:
    """Cancels the call of a tf.function that goes on for longer; steps may follow one another.

    What waits for a pipeline in TensorFlow can be cancelled; Python that hangs can't, but the step
    does not wait for it where anything prefetches.
    """

    def __init__(self, cancellation: Cancellation, seconds: float = STEP_LIMIT_S) -> None:
        self._seconds = seconds
        self._cancellation = cancellation
        self._began: float | None = None
        self._over = threading.Event()
        self.exceeded = False
        threading.Thread(target=self._watch, name="pipediag-step-limit", daemon=True).start()

    def __enter__(self) -> None:
        """A step begins; where it takes too long TensorFlow raises a CancelledError in it."""
        self._cancellation.context.__enter__()
        self._began = time.monotonic()

    def __exit__(self, *error: Any) -> None:
        self._began = None
        self._cancellation.context.__exit__(*error)

    def end(self) -> None:
        """No further step will be called."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            began = self._began
            if began is not None and time.monotonic() - began > self._seconds:
                self.exceeded = True
                if self._cancellation.lack is None:
                    self._cancellation.start()
                return
