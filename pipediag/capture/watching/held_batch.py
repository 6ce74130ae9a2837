"""The batch that trials began at, for the script to have when they are over."""

from __future__ import annotations

from typing import Any

from pipediag.capture.loops.loop import Loop


class HeldBatch:
    """At most one loop is held at a time, and its batch with it."""

    def __init__(self) -> None:
        self._held: tuple[Loop, Any] | None = None

    def swapped(self, loop: Loop, batch: Any) -> Any:
        """The batch to hand over where the loop begins to be held, or is released."""
        held, self._held = self._held, None
        if held is not None:
            return held[1]
        self._held = loop, batch
        return batch

    def or_else(self, loop: Loop, batch: Any) -> Any:
        """The batch that is held for this loop, or that one where none is."""
        return self._held[1] if self._held is not None and self._held[0] is loop else batch

    def let_go(self) -> None:
        """Drop what belongs to the script."""
        self._held = None
