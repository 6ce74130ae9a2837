"""How long callbacks take after batches, clocked while stacks are sampled.

Samples of a stack are few, and miss what holds the interpreter lock; a clock misses nothing. It
runs in no other window, so that no step that is timed pays for it.
"""

from __future__ import annotations


class CallbackClock:
    """Adds up what each class of callbacks takes, from `start` to `stop`."""

    def __init__(self) -> None:
        self.running = False
        """Read on every batch."""
        self._ns: dict[str, int] = {}

    def start(self) -> None:
        """From now on; what was added up before is gone."""
        self._ns = {}
        self.running = True

    def add(self, name: str, ns: int) -> None:
        """So much was taken by a callback of that class."""
        if self.running:
            self._ns[name] = self._ns.get(name, 0) + ns

    def stop(self) -> dict[str, int]:
        """Nanoseconds by class."""
        self.running = False
        taken, self._ns = self._ns, {}
        return taken


CALLBACK_CLOCK = CallbackClock()
"""One for all that a process trains, as is the window in which it runs."""
